'use strict';
// Shared by all pages. Text enters the document as text nodes only; no markup is ever parsed from data.

const UNSEEN = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]|[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/g;

// Controls and marks of writing direction are written out: they would show nothing, or reorder their neighbours.
function visible(text) {
  return String(text).replace(UNSEEN, (c) =>
    `⟨U+${c.charCodeAt(0).toString(16).toUpperCase().padStart(4, '0')}⟩`);
}

// node('p', {class: 'x', 'aria-label': 'y', onclick: f}, 'text', otherNode)
function node(tag, attributes, ...children) {
  const made = document.createElement(tag);
  for (const [key, value] of Object.entries(attributes || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (key.startsWith('on')) made.addEventListener(key.slice(2), value);
    else made.setAttribute(key, value === true ? '' : String(value));
  }
  for (const child of children.flat()) {
    if (child === null || child === undefined) continue;
    made.append(child instanceof Node ? child : document.createTextNode(visible(child)));
  }
  return made;
}

const byId = (id) => document.getElementById(id);
const DATA = JSON.parse(byId('data').textContent);

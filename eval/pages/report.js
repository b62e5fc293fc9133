// The example browser. Rows are made only for what is in sight; everything else is numbers in arrays.

const ROW_REM = 4.5;
const SPARE_ROWS = 6;
const collator = new Intl.Collator('en', { numeric: true });
const state = { view: null, metric: 0, order: [], at: -1 };

const last = () => state.view.sides[state.view.sides.length - 1];
const value = (side, i) => side.metrics.length ? side.metrics[state.metric][i] : null;
const count = (n) => n.toLocaleString('en');

function difference(i) {
  const [before, after] = state.view.sides;
  if (!after) return null;
  const [a, b] = [value(before, i), value(after, i)];
  return a === null || b === null || a === undefined || b === undefined ? null : b - a;
}

function kind(i) {
  const [before, after] = state.view.sides;
  if (!after) return '';
  const d = difference(i);
  if (d < 0) return 'lost';
  if (d > 0) return 'won';
  return before.predictions[i] === after.predictions[i] ? 'same' : 'changed';
}

// --- which examples, in which order -----------------------------------------------------------------

function matches(i, show) {
  if (show === 'all') return true;
  if (show === 'unanswered') return last().status[i] !== 'ok';
  const found = kind(i);
  return show === 'flips' ? found === 'lost' || found === 'won' : found === show;
}

function searchText(i) {
  const view = state.view;
  if (!view.searched) view.searched = [];
  if (view.searched[i] === undefined) {
    const texts = [view.ids[i], view.questions[i], ...view.answers[i], ...view.sides.map((s) => s.predictions[i] || '')];
    view.searched[i] = texts.join('\n').toLowerCase();
  }
  return view.searched[i];
}

const GROUPS = { lost: 0, won: 1, changed: 2, same: 3, '': 3 };

// A number or a text to sort by; null comes last, whatever the direction.
function sortKey(name) {
  const view = state.view;
  if (name === 'id') return (i) => view.ids[i];
  if (name === 'question') return (i) => view.questions[i];
  if (name === 'answer') return (i) => last().predictions[i];
  if (name === 'rank') return (i) => last().ranks[i];
  if (name === 'difference') return difference;
  if (name === 'before') return (i) => value(view.sides[0], i);
  if (name === 'after') return (i) => value(last(), i);
  return null;
}

function sorted(found, name, reverse) {
  const sign = reverse ? -1 : 1;
  if (name === 'flips') {
    const groups = found.map((i) => [GROUPS[kind(i)], -Math.abs(difference(i) || 0), i]);
    groups.sort((a, b) => sign * (a[0] - b[0] || a[1] - b[1] || a[2] - b[2]));
    return groups.map((g) => g[2]);
  }
  const key = sortKey(name);
  const keyed = found.map((i) => [key(i), i]);
  keyed.sort(([a, i], [b, j]) => {
    if (a === null || b === null) return (a === null) - (b === null) || i - j;
    return sign * (typeof a === 'string' ? collator.compare(a, b) : a - b) || i - j;
  });
  return keyed.map((k) => k[1]);
}

function update() {
  const terms = byId('search').value.toLowerCase().split(/\s+/).filter(Boolean);
  const show = byId('show').value;
  const found = [];
  for (let i = 0; i < state.view.ids.length; i += 1) {
    if (matches(i, show) && terms.every((term) => searchText(i).includes(term))) found.push(i);
  }
  state.order = sorted(found, byId('sort').value, byId('reverse').checked);
  byId('count').textContent = `${count(found.length)} of ${count(state.view.ids.length)} examples`;
  byId('rows').style.height = `${state.order.length * ROW_REM}rem`;
  byId('list').scrollTop = 0;
  choose(state.order.length ? 0 : -1);
}

// --- the list -----------------------------------------------------------------------------------------

const rowHeight = () => ROW_REM * parseFloat(getComputedStyle(document.documentElement).fontSize);
const BADGES = { lost: '▼ lost', won: '▲ won', changed: '● changed', same: '= same', '': '' };

function row(at) {
  const i = state.order[at];
  const answers = state.view.sides.map((side) => side.predictions[i] ?? `(${side.status[i]})`).join(' → ');
  const found = kind(i);
  const made = node('div', {
    class: 'row', role: 'option', id: `row-${at}`, 'aria-selected': at === state.at ? 'true' : 'false',
    'aria-setsize': state.order.length, 'aria-posinset': at + 1, onclick: () => { choose(at); toDetail(true); },
  },
  node('div', {}, found ? node('span', { class: `badge ${found}` }, BADGES[found]) : null,
    node('span', { class: 'one-line', dir: 'auto' }, state.view.questions[i].slice(0, 200))),
  node('div', {}, node('span', { class: 'one-line quiet', dir: 'auto' }, answers.slice(0, 300))));
  made.style.top = `${at * ROW_REM}rem`;
  return made;
}

function drawRows() {
  const list = byId('list');
  const height = rowHeight();
  const first = Math.max(0, Math.floor(list.scrollTop / height) - SPARE_ROWS);
  const end = Math.min(state.order.length, Math.ceil((list.scrollTop + list.clientHeight) / height) + SPARE_ROWS);
  const rows = [];
  for (let at = first; at < end; at += 1) rows.push(row(at));
  byId('rows').replaceChildren(...rows);
}

function choose(at) {
  state.at = at;
  const list = byId('list');
  const height = rowHeight();
  if (at * height < list.scrollTop) list.scrollTop = at * height;
  if ((at + 1) * height > list.scrollTop + list.clientHeight) list.scrollTop = (at + 1) * height - list.clientHeight;
  drawRows();
  if (at < 0) list.removeAttribute('aria-activedescendant');
  else list.setAttribute('aria-activedescendant', `row-${at}`);
  drawDetail();
}

function onKey(event) {
  const page = Math.max(1, Math.floor(byId('list').clientHeight / rowHeight()) - 1);
  const end = state.order.length - 1;
  const moves = {
    ArrowDown: state.at + 1, ArrowUp: state.at - 1, PageDown: state.at + page, PageUp: state.at - page, Home: 0, End: end,
  };
  if (end < 0) return;
  if (event.key === 'Enter') toDetail(false);
  else if (event.key in moves) choose(Math.min(end, Math.max(0, moves[event.key])));
  else return;
  event.preventDefault();
}

// On a narrow window the detail stands below the list: a tap goes to it. Enter always does.
function toDetail(onlyIfNarrow) {
  if (onlyIfNarrow && window.matchMedia('(min-width: 64rem)').matches) return;
  byId('detail').focus({ preventScroll: true });
  byId('detail').scrollIntoView({ block: 'start' });
}

// --- one example --------------------------------------------------------------------------------------

function shown(number) {
  if (number === null || number === undefined) return '–';
  return Number.isInteger(number) ? String(number) : number.toFixed(3);
}

function share(thousandths) {
  if (thousandths === null || thousandths === undefined) return '–';
  return thousandths === 0 ? '<0.001' : (thousandths / 1000).toFixed(3);
}

function drawDetail() {
  const detail = byId('detail');
  detail.scrollTop = 0;
  if (state.at < 0) {
    detail.replaceChildren(node('p', {}, 'No example fits.'));
    return;
  }
  const i = state.order[state.at];
  const { view } = state;
  const found = kind(i);
  detail.setAttribute('aria-label', `Example ${view.ids[i]}`);
  detail.replaceChildren(...[
    node('button', { type: 'button', class: 'to-list', onclick: toList }, 'Back to the list'),
    node('h3', { class: 'text', dir: 'auto' }, view.questions[i]),
    node('p', { class: 'quiet' }, found ? node('span', { class: `badge ${found}` }, `${BADGES[found]} `) : null,
      `id ${view.ids[i]}`),
    node('h4', {}, view.answers[i].length === 1 ? 'Reference' : 'References'),
    node('ul', {}, view.answers[i].map((answer) => node('li', { class: 'text', dir: 'auto' }, answer))),
    node('div', { class: view.sides.length > 1 ? 'sides two' : 'sides' },
      view.sides.map((side, s) => answerCard(side, view.labels[s], i))),
    ...view.sides.map((side, s) => evidence(side, view.labels[s], i, s === view.sides.length - 1)).reverse(),
    metricTable(i),
  ].filter(Boolean));
}

function toList() {
  byId('list').focus({ preventScroll: true });
  byId('examples').scrollIntoView({ block: 'start' });
}

function answerCard(side, label, i) {
  const text = side.predictions[i];
  const rank = side.ranks[i];
  return node('section', { class: 'side', 'aria-label': `Answer of ${label}` },
    node('h4', {}, label),
    text === null ? node('p', { class: 'quiet' }, `no answer (${side.status[i]})`)
      : node('p', { class: 'text answer', dir: 'auto' }, text === '' ? '(empty)' : text),
    text !== null && side.status[i] !== 'ok' ? node('p', { class: 'quiet' }, `status ${side.status[i]}`) : null,
    rank === null ? null : node('p', { class: 'quiet' }, `the first passage with an answer has rank ${rank}`));
}

function metricTable(i) {
  const { view } = state;
  if (!view.metrics.length) return null;
  const rows = view.metrics.map((metric, m) => node('tr', {}, node('th', { scope: 'row' }, metric),
    view.sides.map((side) => node('td', {}, shown(side.metrics[m][i])))));
  return scroll('Metrics of this example', node('table', {},
    node('thead', {}, node('tr', {}, node('th', { scope: 'col' }, 'Metric'),
      view.labels.map((label) => node('th', { scope: 'col' }, label)))),
    node('tbody', {}, rows)));
}

function scroll(label, ...children) {
  return node('div', { class: 'scroll', role: 'region', 'aria-label': label, tabindex: 0 }, ...children);
}

function evidence(side, label, i, open) {
  const [numbers, prior, posterior, more, rest] = side.passages[i];
  if (!numbers.length) return null;
  const best = posterior.indexOf(Math.max(...posterior));
  const items = numbers.map((number, k) => passage(number, prior[k], posterior[k], k === Math.max(best, 0), i));
  const left = more ? `${count(more)} more passages are not in this page; their posterior is ${share(rest)}.` : null;
  return node('details', { open }, node('summary', {}, `Passages of ${label}`),
    side.tokens[i] ? heatMap(side.tokens[i], numbers, i) : null,
    node('ol', { class: 'passages' }, items), left ? node('p', { class: 'quiet' }, left) : null);
}

function bar(label, thousandths, kindOfBar) {
  if (thousandths === undefined) return null;
  const drawn = node('span', { class: kindOfBar, 'aria-hidden': 'true' });
  drawn.style.setProperty('--p', thousandths || 0);
  return node('div', { class: 'share' }, node('span', {}, label), node('span', {}, share(thousandths)), drawn);
}

function passageName(number) {
  const title = DATA.passages.titles[number];
  return title === null ? DATA.passages.ids[number] : `${title} (${DATA.passages.ids[number]})`;
}

function passage(number, prior, posterior, open, i) {
  const text = DATA.passages.texts[number];
  return node('li', {}, node('h4', { dir: 'auto' }, passageName(number)),
    bar('prior', prior, 'bar'), bar('posterior', posterior, 'bar after'),
    text === null ? null : node('details', { open }, node('summary', {}, 'Text'),
      node('p', { class: 'text', dir: 'auto' }, marked(text, state.view.answers[i]))));
}

// The text in pieces, the references that stand in it as whole words marked.
function marked(text, answers) {
  const words = answers.filter((a) => a.length > 1).sort((a, b) => b.length - a.length)
    .map((a) => a.replace(/[\\^$.*+?()[\]{}|/]/g, '\\$&'));
  if (!words.length) return [text];
  const found = new RegExp(`(?<![\\p{L}\\p{N}])(?:${words.join('|')})(?![\\p{L}\\p{N}])`, 'giu');
  const pieces = [];
  let at = 0;
  for (const hit of text.matchAll(found)) {
    pieces.push(text.slice(at, hit.index), node('mark', {}, hit[0]));
    at = hit.index + hit[0].length;
  }
  return [...pieces, text.slice(at)];
}

// Fig. 2 of the paper: which passage each token came from.
function heatMap([tokens, cells, left], numbers) {
  const rows = numbers.slice(0, cells[0].length).map((number, k) => node('tr', {},
    node('th', { scope: 'row', dir: 'auto' }, passageName(number)),
    cells.map((token) => {
      const cell = node('td', {}, share(token[k]).replace(/^0/, ''));
      cell.style.setProperty('--p', token[k] || 0);
      return cell;
    })));
  return node('div', {}, scroll('Posterior over passages for each token', node('table', { class: 'heat' },
    node('caption', {}, 'Posterior over passages for each token'),
    node('thead', {}, node('tr', {}, node('th', { scope: 'col' }, 'Passage'),
      tokens.map((token) => node('th', { scope: 'col' }, token)))),
    node('tbody', {}, rows))),
  left ? node('p', { class: 'quiet' }, `${count(left)} more tokens are not in this page.`) : null);
}

// --- start --------------------------------------------------------------------------------------------

function fillSelect(id, options) {
  byId(id).replaceChildren(...options.map(([name, label]) => node('option', { value: name }, label)));
}

function openView(number) {
  state.view = DATA.views[number];
  const { view } = state;
  state.metric = Math.max(0, view.metrics.indexOf(view.primary));
  const paired = view.sides.length > 1;
  fillSelect('metric', view.metrics.map((metric, m) => [m, metric]));
  byId('metric').value = String(state.metric);
  fillSelect('sort', [
    ...(paired ? [['flips', 'flips first'], ['difference', 'difference']] : []),
    ['after', paired ? `metric, ${view.labels[1]}` : 'metric'],
    ...(paired ? [['before', `metric, ${view.labels[0]}`]] : []),
    ['id', 'id'], ['question', 'question'], ['answer', 'answer'], ['rank', 'rank of the answer'],
  ]);
  for (const option of byId('show').options) {
    option.hidden = !paired && !['all', 'unanswered'].includes(option.value);
  }
  byId('show').value = 'all';
  update();
}

let waiting = 0;
function soon(work, milliseconds) {
  clearTimeout(waiting);
  waiting = setTimeout(work, milliseconds);
}

byId('view').addEventListener('change', (event) => openView(Number(event.target.value)));
byId('search').addEventListener('input', () => soon(update, 120));
for (const id of ['show', 'sort', 'reverse']) byId(id).addEventListener('change', update);
byId('metric').addEventListener('change', (event) => { state.metric = Number(event.target.value); update(); });
byId('list').addEventListener('keydown', onKey);
let drawing = false;
byId('list').addEventListener('scroll', () => {
  if (drawing) return;
  drawing = true;
  requestAnimationFrame(() => { drawing = false; drawRows(); });
});
if (DATA.views.length) openView(0);

// One pair at a time; every choice is kept in this browser at once, and leaves it as JSON lines.

const STORE = `ragline-sheet-${DATA.sheet}`;
const state = { annotator: DATA.annotator, at: 0, answers: {} };

function load() {
  try {
    const kept = JSON.parse(localStorage.getItem(STORE) || 'null');
    if (kept && kept.answers) Object.assign(state, kept);
  } catch (error) {
    warn();
  }
  state.at = Math.min(Math.max(0, state.at | 0), DATA.items.length - 1);
}

function save() {
  try {
    localStorage.setItem(STORE, JSON.stringify(state));
  } catch (error) {
    warn();
  }
}

function warn() {
  byId('warning').textContent =
    'This browser does not keep progress for this page. Export before closing it.';
}

function isDone(item) {
  const given = state.answers[item.id] || {};
  return DATA.criteria.every((c) => given[c.name]);
}

function set(item, name, value) {
  state.answers[item.id] = { ...state.answers[item.id], [name]: value };
  save();
  showProgress();
}

function showProgress() {
  const done = DATA.items.filter(isDone).length;
  byId('bar').max = DATA.items.length;
  byId('bar').value = done;
  byId('progress').textContent = `${done} of ${DATA.items.length} pairs judged`;
}

function choice(item, criterion, option) {
  const given = (state.answers[item.id] || {})[criterion.name];
  const radio = node('input', {
    type: 'radio', name: criterion.name, value: option.value,
    onchange: () => set(item, criterion.name, option.value),
  });
  radio.checked = given === option.value;
  return node('label', {}, radio, node('span', {}, option.label));
}

function show() {
  const item = DATA.items[state.at];
  byId('where').textContent = `Pair ${state.at + 1} of ${DATA.items.length}`;
  byId('asked').replaceChildren(node('p', { class: 'text', dir: 'auto' }, item.question));
  const sides = [['Text 1', item.left], ['Text 2', item.right]];
  byId('pair').replaceChildren(...sides.map(([name, text]) => node('section', { 'aria-label': name },
    node('h3', {}, name), node('p', { class: 'text', dir: 'auto', tabindex: 0 }, text))));
  byId('choices').replaceChildren(...DATA.criteria.map((criterion) => node('fieldset', {},
    node('legend', {}, criterion.label),
    criterion.options.map((option) => choice(item, criterion, option)))));
  byId('comment').value = (state.answers[item.id] || {}).comment || '';
  byId('back').disabled = state.at === 0;
  byId('next').disabled = state.at === DATA.items.length - 1;
  showProgress();
}

function go(to) {
  state.at = to;
  save();
  show();
  byId('where').focus();
}

function nextOpen() {
  const n = DATA.items.length;
  for (let step = 1; step <= n; step += 1) {
    const at = (state.at + step) % n;
    if (!isDone(DATA.items[at])) return go(at);
  }
  byId('said').textContent = 'Every pair is judged. Export, and send the file back.';
  return undefined;
}

function exported() {
  return DATA.items.filter((item) => state.answers[item.id]).map((item) => {
    const given = state.answers[item.id];
    const row = { sheet: DATA.sheet, item: item.id, annotator: state.annotator };
    for (const criterion of DATA.criteria) row[criterion.name] = given[criterion.name] || null;
    row.comment = given.comment || '';
    return `${JSON.stringify(row)}\n`;
  }).join('');
}

function exportFile() {
  if (!state.annotator.trim()) {
    byId('said').textContent = 'Enter a name for the annotator first.';
    byId('annotator').focus();
    return;
  }
  const url = URL.createObjectURL(new Blob([exported()], { type: 'application/x-ndjson' }));
  const link = node('a', { href: url, download: `judgements-${DATA.sheet}.jsonl` });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(url), 10000);
  const open = DATA.items.filter((item) => !isDone(item)).length;
  byId('said').textContent = open ? `Exported; ${open} pairs are still to be judged.` : 'Exported; all pairs are judged.';
}

load();
byId('annotator').value = state.annotator;
byId('annotator').addEventListener('input', (event) => { state.annotator = event.target.value; save(); });
byId('comment').addEventListener('input', (event) => set(DATA.items[state.at], 'comment', event.target.value));
byId('back').addEventListener('click', () => go(state.at - 1));
byId('next').addEventListener('click', () => go(state.at + 1));
byId('open').addEventListener('click', nextOpen);
byId('export').addEventListener('click', exportFile);
show();
save();

// The search of the documentation: loads its index when it is first used, finds names first, works without a network.

const MOST = 30;

const box = document.getElementById('search');
const list = document.getElementById('results');
const count = document.getElementById('found');

let index = null; // a promise, once the search is used

/** Words of a name or of a question: `CrossEntropyLoss` and `cross_entropy` have cross and entropy, and each as one word. */
function words(text) {
  const parts = text.split(/[^\p{L}\p{N}]+/u).filter(Boolean);
  const inner = parts.flatMap((part) => part.split(/(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])/));
  return [...new Set([...parts, ...inner, joined(text)].map((word) => word.toLowerCase()))].filter(Boolean);
}

const joined = (text) => text.replace(/^(tg|nn|optim)\./, '').replace(/[^\p{L}\p{N}]+/gu, '').toLowerCase();

async function load() {
  const [{ default: MiniSearch }, response] = await Promise.all([
    import('../vendor/minisearch.js'),
    fetch(new URL('../docs/search.json', import.meta.url)),
  ]);
  if (!response.ok) throw new Error(`${response.status} ${response.statusText}`);
  const search = new MiniSearch({
    fields: ['name', 'others', 'text'],
    storeFields: ['name', 'page', 'kind', 'text'],
    tokenize: words,
    searchOptions: {
      boost: { name: 8, others: 6 },
      prefix: (term) => term.length > 1,
      fuzzy: (term) => (term.length > 4 ? 0.2 : false),
      boostDocument: (id, term, { kind }) => (kind === 'member' || kind === 'module' ? 0.7 : 1),
    },
  });
  search.addAll((await response.json()).map(([name, page, kind, text, others], id) => ({ id, name, page, kind, text, others })));
  return search;
}

/** What is found, the best first; names that begin with the question stand above all, the shortest first. */
function found(search, question) {
  const start = joined(question);
  const results = search.search(question);
  const whole = (name) => (name.toLowerCase() === question.toLowerCase() ? 2e6 : 0);
  const rank = ({ name, score }) => whole(name) + (joined(name).startsWith(start) ? 1e6 / joined(name).length : 0) + score;
  return results.sort((a, b) => rank(b) - rank(a)).slice(0, MOST);
}

async function show() {
  const question = box.value.trim();
  if (!question) return close();
  index ??= load();
  try {
    const results = found(await index, question);
    if (question !== box.value.trim()) return; // typed on meanwhile
    list.replaceChildren(...results.map(item));
    const more = results.length === MOST ? 'More than ' : '';
    say(results.length ? `${more}${results.length} found` : 'Nothing found');
    if (!results.length) list.append(nothing(question));
    list.hidden = false;
  } catch (error) {
    index = null; // the next letter tries again
    say(`The search could not be loaded: ${error.message}`);
    list.replaceChildren(nothing(question, count.textContent));
    list.hidden = false;
  }
}

function item({ name, page, kind, text }) {
  const link = document.createElement('a');
  link.href = new URL(`../docs/${page}`, import.meta.url).href;
  for (const [tag, content] of [['strong', name], ['small', kind], ['span', text]]) {
    const part = document.createElement(tag);
    part.textContent = content;
    link.append(part);
  }
  const entry = document.createElement('li');
  entry.append(link);
  return entry;
}

function nothing(question, text = `Nothing is called “${question}”, and no sentence has it.`) {
  const entry = document.createElement('li');
  const words = document.createElement('p');
  words.textContent = text;
  entry.append(words);
  return entry;
}

function say(text) {
  count.textContent = text;
}

function close() {
  list.hidden = true;
  list.replaceChildren();
  say('');
}

/** Moves the focus among the box and what is found. */
function move(step) {
  const places = [box, ...list.querySelectorAll('a')];
  const at = places.indexOf(document.activeElement);
  places[Math.min(Math.max(at + step, 0), places.length - 1)].focus();
}

function keys(event) {
  if (event.key === 'ArrowDown' || event.key === 'ArrowUp') {
    event.preventDefault();
    move(event.key === 'ArrowDown' ? 1 : -1);
  } else if (event.key === 'Enter' && event.target === box) {
    list.querySelector('a')?.click();
  } else if (event.key === 'Escape') {
    close();
    box.focus();
  }
}

box.addEventListener('focus', () => (index ??= load().catch(() => (index = null))));
box.addEventListener('input', show);
box.addEventListener('keydown', keys);
list.addEventListener('keydown', keys);
addEventListener('keydown', (event) => {
  const typing = event.target.closest?.('input, textarea, select, [contenteditable]');
  if (event.key !== '/' || typing || event.ctrlKey || event.metaKey || event.altKey) return;
  event.preventDefault();
  box.focus();
  box.select();
});
addEventListener('click', (event) => {
  if (!event.target.closest('.docs-search')) close();
});

// The search of the documentation: loads its index when it is first used, works without a network.

import { found, indexed } from './docs_ranking.js';

const MOST = 30;

const box = document.getElementById('search');
const list = document.getElementById('results');
const count = document.getElementById('found');

let index = null; // a promise, once the search is used

async function load() {
  const [{ default: MiniSearch }, response] = await Promise.all([
    import('../vendor/minisearch.js'),
    fetch(new URL('../docs/search.json', import.meta.url)),
  ]);
  if (!response.ok) throw new Error(`${response.status} ${response.statusText}`);
  return indexed(MiniSearch, await response.json());
}

async function show() {
  const question = box.value.trim();
  if (!question) return close();
  index ??= load();
  try {
    const results = found(await index, question, MOST);
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
  for (const [tag, content] of [['strong', name], ['small', kind === 'background' ? 'guide' : kind], ['span', text]]) {
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

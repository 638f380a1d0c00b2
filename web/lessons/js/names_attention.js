// What each head looks at: a small map of every head, and one of them as a table of numbers.

import { colour, onScheme, ramp } from './colour.js';
import { grid, paint } from './grid.js';
import { make } from './make.js';
import { percent } from './names_letters.js';

const HOW_TO = 'A row is a letter that looks, its numbers are what it takes from each. Point at one, or walk with the arrow keys.';
const STEPS = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] };

export class Attention {
  /** @param {{heads: HTMLElement, map: HTMLTableElement, caption: HTMLElement}} parts */
  constructor(parts) {
    this._parts = parts;
    this._chosen = [0, 0]; // layer, head
    this._at = [0, 0]; // the cell of the table that the keyboard is at
    this._build(2, 4);
    const { map } = parts;
    for (const type of ['pointerover', 'focusin']) map.addEventListener(type, ({ target }) => this._tell(target.closest('[data-cell]')));
    map.addEventListener('pointerleave', () => this._tell(map.querySelector(':focus')));
    map.addEventListener('focusout', () => this._tell(null));
    map.addEventListener('keydown', (event) => this._key(event));
    onScheme(() => this._letters && this._paint());
  }

  /**
   * @param {string} letters of the places, the first of them the point
   * @param {number[][][][]} maps by layer, head, letter that looks and letter that it looks at
   */
  show(letters, maps) {
    this._maps = maps;
    this._build(maps.length, maps[0].length);
    this._paint();
    if (letters !== this._letters) this._lay(letters);
    this._fill();
  }

  /** A button with a small map for each head. */
  _build(layers, heads) {
    const key = `${layers} ${heads}`;
    if (key === this._size) return;
    this._size = key;
    this._chosen = [0, 0];
    this._buttons = Array.from({ length: layers }, (_, layer) => Array.from({ length: heads }, (_, head) => {
      const button = make('button', { type: 'button', className: 'head' }, make('canvas', { width: 1, height: 1 }));
      button.setAttribute('aria-label', title(layer, head));
      button.addEventListener('click', () => this._choose(layer, head));
      return button;
    }));
    this._parts.heads.replaceChildren(...this._buttons.map((row, layer) =>
      make('div', { className: 'layer' }, make('span', { className: 'layer-name' }, `Layer ${layer + 1}`), ...row)));
    this._press();
  }

  _choose(layer, head) {
    this._chosen = [layer, head];
    this._press();
    if (this._letters) this._fill();
  }

  _press() {
    const [layer, head] = this._chosen;
    this._buttons.flat().forEach((button) => button.setAttribute('aria-pressed', String(button === this._buttons[layer][head])));
    this._parts.map.setAttribute('aria-label', `${title(layer, head)}: how much each letter takes from each`);
  }

  _paint() {
    const colours = ramp(colour('--panel'), colour('--curve-1'), 255);
    this._maps.forEach((heads, layer) => heads.forEach((map, head) => {
      paint(this._buttons[layer][head].firstChild, grid(map), 0, 0.5, 0.5, colours);
    }));
  }

  /** The table for these letters, without its numbers. */
  _lay(letters) {
    const { map } = this._parts;
    const focused = map.contains(document.activeElement);
    this._letters = letters;
    this._at = this._at.map((place) => Math.min(place, letters.length - 1));
    map.style.setProperty('--places', letters.length);
    const name = (letter, scope) => make('th', { scope }, letter);
    this._cells = [...letters].map((_, row) => [...letters].map((_, column) => {
      const cell = make('td', { tabIndex: -1 });
      cell.dataset.cell = `${row} ${column}`;
      return cell;
    }));
    map.replaceChildren(
      make('thead', {}, make('tr', {}, make('td'), ...[...letters].map((letter) => name(letter, 'col')))),
      make('tbody', {}, ...[...letters].map((letter, row) => make('tr', {}, name(letter, 'row'), ...this._cells[row]))),
    );
    this._reach(focused);
  }

  /** The numbers of the chosen head; what a letter may not look at is left empty. */
  _fill() {
    const [layer, head] = this._chosen;
    const map = this._maps[layer][head];
    this._cells.forEach((cells, row) => cells.forEach((cell, column) => {
      const weight = map[row][column];
      cell.textContent = column > row && weight === 0 ? '' : short(weight);
      cell.style.setProperty('--weight', weight);
    }));
    this._tell(this._parts.map.querySelector('[data-told]'));
  }

  /** In words, what the letter of a cell takes from whom. */
  _tell(cell) {
    const { map, caption } = this._parts;
    map.querySelectorAll('[data-told]').forEach((old) => old.removeAttribute('data-told'));
    if (!cell) {
      caption.textContent = HOW_TO;
      return;
    }
    const [row, column] = cell.dataset.cell.split(' ').map(Number);
    const [layer, head] = this._chosen;
    for (const told of [cell, cell.parentElement.firstChild, map.tHead.rows[0].cells[column + 1]]) told.dataset.told = '';
    const weight = this._maps[layer][head][row][column];
    const places = `${this._place(row)} takes ${percent(weight)} from ${row === column ? 'itself' : this._place(column)}`;
    caption.textContent = `${title(layer, head)}: ${places}.${column > row && weight === 0 ? ' The mask forbids it: this comes later.' : ''}`;
  }

  _place(i) {
    return i === 0 ? 'the point at the start' : `“${this._letters[i]}” (letter ${i})`;
  }

  _key(event) {
    const step = STEPS[event.key];
    if (!step || !event.target.dataset.cell) return;
    event.preventDefault();
    const at = event.target.dataset.cell.split(' ').map(Number);
    this._at = at.map((place, i) => Math.max(0, Math.min(this._letters.length - 1, place + step[i])));
    this._reach(true);
  }

  /** One cell is in the order of Tab: the one that the arrow keys have come to. */
  _reach(focus) {
    const [row, column] = this._at;
    this._cells.flat().forEach((cell) => (cell.tabIndex = -1));
    this._cells[row][column].tabIndex = 0;
    if (focus) this._cells[row][column].focus();
  }
}

function title(layer, head) {
  return `Layer ${layer + 1}, head ${head + 1}`;
}

/** Two digits in little room. */
function short(weight) {
  return weight > 0.995 ? '1' : weight.toFixed(2).slice(1);
}

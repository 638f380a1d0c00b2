// The chances of the next letter: a column for each, and how undecided they are.

import { make } from './make.js';

export const LETTERS = '.abcdefghijklmnopqrstuvwxyz';
const MOST_LIKELY = 5;

export class Chances {
  /** @param {{list: HTMLElement, likely: HTMLElement, undecided: HTMLElement}} parts */
  constructor(parts) {
    this._parts = parts;
    this._columns = [...LETTERS].map((letter) => {
      const bar = make('span', { className: 'chance' });
      const value = make('span', { className: 'visually-hidden' });
      const shown = make('span', { className: 'letter' }, letter);
      parts.list.append(make('li', {}, make('span', { className: 'chance-track' }, bar), shown, value));
      return { bar, value };
    });
  }

  /** @param {number[]} numbers that the network gives to the letters @param {number} temperature */
  show(numbers, temperature) {
    this._chances = softmax(numbers.map((number) => number / temperature));
    const most = Math.max(...this._chances);
    this._chances.forEach((chance, i) => {
      this._columns[i].bar.style.height = `${((100 * chance) / most).toFixed(1)}%`;
      this._columns[i].value.textContent = ` ${percent(chance)}`;
    });
    const order = [...LETTERS].map((letter, i) => [this._chances[i], letter]).sort(([a], [b]) => b - a);
    const { likely, undecided } = this._parts;
    likely.textContent = order.slice(0, MOST_LIKELY).map(([chance, letter]) => `${letter} ${percent(chance)}`).join(', ');
    const entropy = -this._chances.reduce((sum, chance) => sum + (chance > 0 ? chance * Math.log(chance) : 0), 0);
    undecided.textContent = Math.exp(entropy).toFixed(1);
  }

  /** @returns {string} a letter, each by its chance */
  draw() {
    let left = Math.random();
    const found = this._chances.findIndex((chance) => (left -= chance) < 0);
    return LETTERS[Math.max(0, found)];
  }
}

export function percent(part) {
  return `${(100 * part).toFixed(part < 0.0995 ? 1 : 0)} %`;
}

function softmax(numbers) {
  const most = Math.max(...numbers);
  const powers = numbers.map((number) => Math.exp(number - most));
  const sum = powers.reduce((a, b) => a + b, 0);
  return powers.map((power) => power / sum);
}

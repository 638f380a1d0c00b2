// The parameters of a program: histograms, and pictures of matrices, as they are between two steps.

import { colourOf } from './colours.js';
import { counted, draw, make, role, showCount, showNumber } from './inspector_parts.js';

const MOST_READ = 4e6; // elements of one that is read, once a second

export class Parameters {
  constructor(box, host) {
    this._box = box;
    this._host = host;
    this._seen = new Set(); // names that are in sight: only these are read
    this._watch = new IntersectionObserver((entries) => this._moved(entries), { root: box, rootMargin: '200px 0px' });
  }

  async show() {
    const found = await this._host.ask('parameters');
    if (found.error) return found.error;
    this._watch.disconnect();
    this._seen.clear();
    this._asked = false;
    this._follow = make('input');
    this._follow.type = 'checkbox';
    this._follow.checked = true;
    const now = make('button', '', 'Read now');
    now.type = 'button';
    now.addEventListener('click', () => this._read());
    const total = found.rows.reduce((sum, { size, trained }) => sum + (trained ? size : 0), 0);
    this._state = make('p', 'inspector-summary');
    const gradients = found.gradients ? '' : ' Gradients are shown of what is compiled with keep_grads=True.';
    const words = make('p', 'inspector-summary', `${showCount(total)} numbers are trained.${gradients}`);
    const lead = make('div', 'inspector-lead', now, make('label', 'check', this._follow, ' Each second'), make('div', '', this._state, words));
    this._rows = new Map(found.rows.map((row) => [row.name, this._row(row, found.gradients)]));
    const list = make('ul', 'parameters', ...[...this._rows.values()].map(({ item }) => item));
    list.setAttribute('aria-label', 'Parameters and buffers');
    this._box.append(lead, list);
    return undefined;
  }

  /** Once a second while the tab is open. */
  async tick() {
    if (this._follow?.checked && this._box.isConnected && !this._box.hidden) await this._read();
  }

  _row({ name, shape, size: count, trained }, gradients) {
    const value = make('div', 'parameter-part');
    const gradient = make('div', 'parameter-part');
    const size = shape.length ? shape.join(' × ') : 'a number';
    const head = make('p', 'parameter-name', make('strong', '', name), ` ${size}${trained ? '' : ', not trained'}`);
    const item = make('li', 'parameter', head, value);
    item.dataset.name = name;
    if (count > MOST_READ) value.append(make('p', 'parameter-words', `${showCount(count)} numbers are too many to follow here.`));
    else this._watch.observe(item);
    if (gradients && trained) item.append(gradient);
    return { item, value, gradient };
  }

  _moved(entries) {
    for (const { target, isIntersecting } of entries) {
      if (isIntersecting) this._seen.add(target.dataset.name);
      else this._seen.delete(target.dataset.name);
    }
    if (this._asked) return;
    this._asked = true; // the first that come into sight are read at once
    this._read();
  }

  async _read() {
    if (this._reading || !this._seen.size) return;
    this._reading = true;
    const found = await this._host.ask('numbers', { names: [...this._seen] });
    this._reading = false;
    if (found.error) {
      this._state.textContent = found.error;
      return;
    }
    this._state.textContent = `After ${counted(found.steps, 'step')}.`;
    for (const [name, numbers] of Object.entries(found.values)) this._draw(this._rows.get(name)?.value, numbers, 'Values');
    for (const [name, numbers] of Object.entries(found.gradients)) this._draw(this._rows.get(name)?.gradient, numbers, 'Gradient');
  }

  _draw(box, numbers, title) {
    if (!box) return;
    const { low, high, mean, deviation, bad, counts, picture } = numbers;
    const words = `${showNumber(low)} to ${showNumber(high)}, mean ${showNumber(mean)} ± ${showNumber(deviation)}${bad ? `; ${showCount(bad)} not finite` : ''}`;
    const most = Math.max(...counts, 1);
    const columns = counts.map((count, i) => draw('rect', { x: i, y: 1 - count / most, width: 0.9, height: count / most }));
    const histogram = draw('svg', { viewBox: `0 0 ${counts.length} 1`, preserveAspectRatio: 'none', class: 'histogram' }, ...columns);
    role('img', histogram).setAttribute('aria-label', `${title}: histogram, ${words}`);
    const shown = [make('p', 'parameter-title', title), histogram, make('p', 'parameter-words', words)];
    if (picture) shown.push(paint(picture, title));
    box.replaceChildren(...shown);
  }
}

/** A matrix as pixels: one colour below zero, one above, and the less of it the nearer to zero. */
function paint({ width, height, data }, title) {
  const canvas = role('img', make('canvas', 'matrix'));
  canvas.setAttribute('aria-label', `${title}: picture, ${height} by ${width}`);
  Object.assign(canvas, { width, height });
  canvas.style.aspectRatio = `${width} / ${height}`;
  const [above, below] = ['--curve-1', '--curve-2'].map((name) => channels(colourOf(name)));
  const context = canvas.getContext('2d');
  const pixels = context.createImageData(width, height);
  const bytes = Int8Array.from(atob(data), (character) => character.charCodeAt(0));
  bytes.forEach((byte, i) => {
    pixels.data.set([...(byte < 0 ? below : above), 2 * Math.abs(byte)], 4 * i);
  });
  context.putImageData(pixels, 0, 0);
  return canvas;
}

/** "rgb(10, 110, 98)" as numbers. */
function channels(colour) {
  return colour.match(/\d+/g).slice(0, 3).map(Number);
}

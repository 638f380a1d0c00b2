// A pad to draw a digit on, and the digit as the data set has it: its longer side 20 pixels, its weight in the middle
// of 28 (http://yann.lecun.com/exdb/mnist/).

import { colour, onScheme } from './colour.js';

const SIZE = 280;
const PEN = 22;
const SIDE = 28;
const BOX = 20;

export class Pad {
  /** @param {HTMLCanvasElement} canvas @param {(pixels: Uint8Array) => void} drawn called while somebody draws */
  constructor(canvas, drawn) {
    this._canvas = Object.assign(canvas, { width: SIZE, height: SIZE });
    this._drawn = drawn;
    this._strokes = [];
    this._ink = canvasOf(SIZE); // white on black, as the data
    canvas.addEventListener('pointerdown', (event) => this._down(event));
    canvas.addEventListener('pointermove', (event) => this._move(event));
    for (const type of ['pointerup', 'pointercancel']) canvas.addEventListener(type, () => (this._drawing = false));
    onScheme(() => this._draw());
    this._draw();
  }

  clear() {
    this._strokes = [];
    this._draw();
  }

  get empty() {
    return this._strokes.length === 0;
  }

  _down(event) {
    event.preventDefault();
    this._canvas.setPointerCapture(event.pointerId);
    this._drawing = true;
    this._strokes.push([this._at(event)]);
    this._changed();
  }

  _move(event) {
    if (!this._drawing) return;
    const passed = event.getCoalescedEvents?.() ?? [];
    for (const one of passed.length ? passed : [event]) this._strokes.at(-1).push(this._at(one));
    this._changed();
  }

  _at(event) {
    const { left, top, width, height } = this._canvas.getBoundingClientRect();
    return [((event.clientX - left) / width) * SIZE, ((event.clientY - top) / height) * SIZE];
  }

  _changed() {
    this._draw();
    this._drawn(this.pixels());
  }

  _draw() {
    const [panel, ink] = ['--sunken', '--ink'].map((name) => `rgb(${colour(name).slice(0, 3).join()})`);
    stroke(this._canvas, this._strokes, panel, ink);
    stroke(this._ink, this._strokes, 'black', 'white');
  }

  /** @returns {Uint8Array} 28 x 28 */
  pixels() {
    const all = this._ink.getContext('2d').getImageData(0, 0, SIZE, SIZE).data;
    const found = bounds(all);
    if (!found) return new Uint8Array(SIDE * SIDE);
    const { left, top, width, height } = found;
    const scale = BOX / Math.max(width, height);
    const place = (x, y) => {
      // In halves, because a browser's smoothing looks at few neighbours only.
      let [source, box] = [this._ink, [left, top, width, height]];
      for (let size = SIZE / 2; size > 2 * SIDE; size /= 2) {
        const half = canvasOf(size);
        half.getContext('2d').drawImage(source, 0, 0, size, size);
        source = half;
        box = box.map((number) => number / 2);
      }
      const context = canvasOf(SIDE).getContext('2d');
      context.imageSmoothingQuality = 'high';
      context.drawImage(source, ...box, x, y, width * scale, height * scale);
      return context.getImageData(0, 0, SIDE, SIDE).data.filter((_, i) => i % 4 === 0);
    };
    const [x, y] = [(SIDE - width * scale) / 2, (SIDE - height * scale) / 2];
    const [cx, cy] = weight(place(x, y));
    return Uint8Array.from(place(x + SIDE / 2 - cx, y + SIDE / 2 - cy));
  }
}

function canvasOf(size) {
  const canvas = Object.assign(document.createElement('canvas'), { width: size, height: size });
  const context = canvas.getContext('2d', { willReadFrequently: true });
  context.fillRect(0, 0, size, size);
  return canvas;
}

function stroke(canvas, strokes, paper, ink) {
  const context = canvas.getContext('2d');
  context.fillStyle = paper;
  context.fillRect(0, 0, SIZE, SIZE);
  Object.assign(context, { strokeStyle: ink, lineWidth: PEN, lineCap: 'round', lineJoin: 'round' });
  for (const points of strokes) {
    context.beginPath();
    context.moveTo(...points[0]);
    for (const point of points) context.lineTo(...point);
    context.stroke();
  }
}

/** The smallest box around what is drawn. */
function bounds(pixels) {
  let [left, top, right, bottom] = [SIZE, SIZE, -1, -1];
  for (let y = 0; y < SIZE; y++) {
    for (let x = 0; x < SIZE; x++) {
      if (pixels[(y * SIZE + x) * 4] < 30) continue;
      [left, right] = [Math.min(left, x), Math.max(right, x)];
      [top, bottom] = [Math.min(top, y), Math.max(bottom, y)];
    }
  }
  return right < 0 ? null : { left, top, width: right - left + 1, height: bottom - top + 1 };
}

/** The centre of mass of a 28 x 28 picture. */
function weight(pixels) {
  let [sum, x, y] = [0, 0, 0];
  pixels.forEach((value, i) => {
    sum += value;
    x += value * ((i % SIDE) + 0.5);
    y += value * (Math.floor(i / SIDE) + 0.5);
  });
  return sum ? [x / sum, y / sum] : [SIDE / 2, SIDE / 2];
}

// A recorded run of the first example: its curve, and what the network answers all over the square. It plays once, at
// once, and gives way to whatever runs here.

import { colour, diverging, onScheme } from '../lessons/js/colour.js';
import { paint } from '../lessons/js/grid.js';
import { decoded } from '../lessons/js/values.js';

const MILLISECONDS = 4600;
const HIGHEST = 0.8; // of the curve's axis: a guess between two classes costs 0.69
const EDGE = 1.5; // the square reaches from -1.5 to 1.5
const SIDE = 320; // pixels of the points' canvas

export class Recorded {
  /**
   * @param {{figure: HTMLElement, answer: HTMLCanvasElement, points: HTMLCanvasElement, note: HTMLElement,
   *   pause: HTMLButtonElement}} parts
   * @param {import('./chart.js').Chart} chart
   */
  constructor(parts, chart) {
    this._parts = parts;
    this._chart = chart;
    this._at = 0; // how far it has come, 0 to 1
    this._frame = null; // of the animation, while it moves
    parts.pause.addEventListener('click', () => this._toggle());
    chart.preview([], HIGHEST); // the axes stand where they will stay
  }

  /** @param {string} url of what `tools/record_lessons.py` wrote */
  async start(url) {
    try {
      const response = await fetch(url);
      if (!response.ok) throw new Error(response.statusText);
      [this._data, ...this._shown] = decoded(await response.json());
    } catch {
      this.stop(); // the page does without
    }
    if (this._over) return;
    this._losses = this._shown.flatMap(({ losses }) => losses);
    this._use();
    onScheme(() => this._over || this._use());
    const still = matchMedia('(prefers-reduced-motion: reduce)').matches;
    this._at = still ? 1 : 0;
    this._show();
    for (const part of [this._parts.figure, this._parts.note]) part.dataset.shown = '';
    if (still) this._label();
    else this._toggle();
  }

  /** Takes it away for good. */
  stop() {
    if (this._over) return;
    this._over = true;
    cancelAnimationFrame(this._frame);
    for (const part of [this._parts.figure, this._parts.note]) delete part.dataset.shown;
    this._chart.clear();
  }

  _toggle() {
    if (this._frame !== null) {
      cancelAnimationFrame(this._frame);
      this._frame = null;
    } else {
      if (this._at >= 1) this._at = 0;
      this._before = null;
      this._frame = requestAnimationFrame((now) => this._move(now));
    }
    this._label();
  }

  _move(now) {
    this._at = Math.min(1, this._at + (now - (this._before ?? now)) / MILLISECONDS);
    this._before = now;
    this._show();
    this._frame = this._at < 1 ? requestAnimationFrame((later) => this._move(later)) : null;
    if (this._frame === null) this._label();
  }

  _label() {
    this._parts.pause.firstChild.data = this._frame !== null ? 'Pause' : this._at >= 1 ? 'Play again' : 'Play';
  }

  /** The first steps change most: they are played slower. The picture glides from one that was recorded to the next. */
  _show() {
    const step = this._at ** 1.5 * this._losses.length;
    this._chart.preview(this._losses.map((loss, i) => (i < step ? loss : null)), HIGHEST);
    const place = this._at ** 1.5 * (this._shown.length - 1);
    const [before, after] = [Math.floor(place), Math.ceil(place)].map((i) => this._shown[i].answer);
    const values = before.values.map((value, i) => value + (after.values[i] - value) * (place % 1));
    paint(this._parts.answer, { shape: before.shape, values }, 0, 0.5, 0.5, this._colours);
  }

  /** The colours of the style sheet: of the answers, and of the points that lie over them. */
  _use() {
    this._colours = diverging();
    const canvas = Object.assign(this._parts.points, { width: SIDE, height: SIDE });
    const context = canvas.getContext('2d');
    context.lineWidth = 1.5;
    const [ink, paper] = ['--ink', '--panel'].map((name) => `rgb(${colour(name).slice(0, 3).join()})`);
    this._data.points.forEach(([x, y], i) => {
      const [cx, cy] = [((x + EDGE) / (2 * EDGE)) * SIDE, ((EDGE - y) / (2 * EDGE)) * SIDE];
      const second = this._data.arm[i] > 0;
      context.fillStyle = second ? paper : ink;
      context.strokeStyle = second ? ink : paper;
      context.beginPath();
      context.arc(cx, cy, 4.5, 0, 2 * Math.PI);
      context.fill();
      context.stroke();
    });
    this._show();
  }
}

// Measured times: bars of the kernels and of a run, and a run's time over the sizes.

import { counted, showNanoseconds } from '../../js/inspector_parts.js';
import { draw, make } from './make.js';

const WAYS = [['fused', 'fused'], ['apart', 'one by one']];
const [WIDTH, HEIGHT] = [560, 230];
const EDGE = { left: 62, right: 28, top: 12, bottom: 40 };

export const shownTime = (seconds) => showNanoseconds(seconds * 1e9);

export class Bars {
  constructor(box) {
    this._rows = WAYS.flatMap(([way, title]) =>
      ['kernels', 'clock'].map((what) => {
        const track = make('span', { className: 'time-track' });
        track.setAttribute('role', 'img');
        box.append(make('div', { className: `time-row ${what}` }, make('span', {}, `${title}, ${what === 'clock' ? 'a run' : 'kernels'}`), track));
        return { way, what, title, track };
      }),
    );
    this.show(null, {});
  }

  /** @param {object | null} times seconds by way, or null where nothing was measured @param {object} kernels of each way */
  show(times, kernels) {
    const parts = (way, what) => (times ? (what === 'clock' ? [times[way].clock] : times[way].kernels) : []);
    const sum = (list) => list.reduce((total, value) => total + value, 0);
    const longest = Math.max(...this._rows.map(({ way, what }) => sum(parts(way, what)))) || 1;
    for (const { way, what, title, track } of this._rows) {
      const list = parts(way, what);
      track.replaceChildren(...list.map((time, i) => {
        const one = make('span', { className: 'time-part', title: `${what === 'clock' ? 'a run' : kernels[way][i].name}: ${shownTime(time)}` });
        one.style.inlineSize = `${(100 * time) / longest}%`;
        return one;
      }));
      const words = what === 'clock' ? 'a run by the clock' : counted(list.length, 'kernel');
      track.setAttribute('aria-label', `${title}: ${list.length ? `${words}, ${shownTime(sum(list))}` : 'not measured'}`);
    }
  }
}

/** The time of a run over the number of rows, both on scales of powers. */
export class Sizes {
  constructor(svg) {
    this._svg = svg;
    this._points = new Map();
    svg.setAttribute('viewBox', `0 0 ${WIDTH} ${HEIGHT}`);
    this._draw();
  }

  clear() {
    this._points.clear();
    this._draw();
  }

  add(n, times) {
    this._points.set(n, times);
    this._draw();
  }

  _draw() {
    const points = [...this._points].sort(([a], [b]) => a - b);
    const all = points.flatMap(([, times]) => WAYS.map(([way]) => times[way].clock));
    const low = Math.floor(Math.log10(Math.min(...all, 1e-4)));
    const high = Math.max(low + 2, Math.ceil(Math.log10(Math.max(...all, 1e-2))));
    const x = (n) => EDGE.left + ((Math.log2(n) - 4) / 10) * (WIDTH - EDGE.left - EDGE.right);
    const y = (time) => HEIGHT - EDGE.bottom - ((Math.log10(time) - low) / (high - low)) * (HEIGHT - EDGE.top - EDGE.bottom);
    this._svg.replaceChildren();
    for (let power = low; power <= high; power++) {
      const at = y(10 ** power);
      this._svg.append(draw('line', { class: 'grid', x1: EDGE.left, x2: WIDTH - EDGE.right, y1: at, y2: at }));
      this._svg.append(draw('text', { x: EDGE.left - 6, y: at + 4, 'text-anchor': 'end' }, shownTime(10 ** power)));
    }
    for (let power = 4; power <= 14; power += 2) {
      this._svg.append(draw('text', { x: x(2 ** power), y: HEIGHT - EDGE.bottom + 18, 'text-anchor': 'middle' }, (2 ** power).toLocaleString('en')));
    }
    this._svg.append(draw('text', { class: 'axis-name', x: WIDTH - EDGE.right, y: HEIGHT - 5, 'text-anchor': 'end' }, 'rows'));
    for (const [way, title] of WAYS) {
      const line = points.map(([n, times]) => [x(n), y(times[way].clock)]);
      this._svg.append(draw('polyline', { class: `time-line ${way}`, points: line.map((at) => at.join()).join(' ') }));
      this._svg.append(...line.map(([cx, cy]) => mark(way, cx, cy)));
      const right = way === 'fused' ? EDGE.left + 10 : EDGE.left + 90;
      this._svg.append(mark(way, right, HEIGHT - 9), draw('text', { x: right + 10, y: HEIGHT - 5 }, title));
    }
    const words = points.map(([n, { fused, apart }]) => `${n} rows ${shownTime(fused.clock)} fused, ${shownTime(apart.clock)} one by one`);
    this._svg.setAttribute('aria-label', `Time of a run over the number of rows: ${words.join('; ') || 'nothing measured yet'}`);
  }
}

/** A circle for what is fused, a square for what is not. */
function mark(way, x, y) {
  if (way === 'fused') return draw('circle', { class: 'time-mark fused', cx: x, cy: y, r: 5 });
  return draw('rect', { class: 'time-mark apart', x: x - 4.5, y: y - 4.5, width: 9, height: 9 });
}

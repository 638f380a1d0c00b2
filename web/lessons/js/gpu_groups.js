// Which invocation computes which element, step by step.

import { draw, part } from './make.js';

const WIDTH = 720;
const CELL = WIDTH / 16;
const GAP = 54; // between the array and the lanes

export class Groups {
  constructor() {
    this._svg = part('group');
    this._step = 0;
    part('group-kind').addEventListener('change', () => this._go(0));
    part('group-next').addEventListener('click', () => this._go(this._step + 1));
    part('group-back').addEventListener('click', () => this._go(this._step - 1));
    part('group-over').addEventListener('click', () => this._go(0));
    this._svg.setAttribute('viewBox', `0 0 ${WIDTH} ${5 * CELL + GAP}`);
  }

  /** @param {object} groups rows, columns, and the steps of each kind of kernel */
  show(groups) {
    this._groups = groups;
    this._go(0);
  }

  _go(step) {
    if (!this._groups) return;
    const steps = this._groups[part('group-kind').value];
    this._step = Math.min(Math.max(0, step), steps.length - 1);
    // Without the focus: a disabled button would lose it.
    part('group-back').setAttribute('aria-disabled', String(this._step === 0));
    part('group-next').setAttribute('aria-disabled', String(this._step === steps.length - 1));
    const now = steps[this._step];
    part('group-says').textContent = `Step ${this._step + 1} of ${steps.length}. ${now.says}`;
    this._draw(now, steps.slice(0, this._step));
  }

  _draw(now, before) {
    const { rows, columns } = this._groups;
    const lanes = now.lanes.length;
    const width = WIDTH / columns;
    const done = new Map(before.flatMap(({ elements }) => elements));
    const current = new Map(now.elements);
    const cells = Array.from({ length: rows * columns }, (_, i) => {
      const kind = current.has(i) ? 'now' : done.has(i) ? 'done' : '';
      const text = current.get(i) ?? done.get(i) ?? '';
      return box((i % columns) * width, Math.floor(i / columns) * CELL, width, String(text), kind);
    });
    const left = (WIDTH - lanes * CELL) / 2;
    const top = rows * CELL + GAP;
    const middle = (lane) => left + (lane + 0.5) * CELL;
    const arcs = (now.adds ?? []).map(([to, from]) => draw('path', {
      class: 'group-add', d: `M${middle(from)} ${top}C${middle(from)} ${top - 26} ${middle(to)} ${top - 26} ${middle(to)} ${top}`,
    }));
    const wires = now.elements.map(([i, lane]) => draw('line', {
      class: 'group-wire', x1: ((i % columns) + 0.5) * width, y1: (Math.floor(i / columns) + 1) * CELL, x2: middle(lane), y2: top,
    }));
    const boxes = now.lanes.map((text, lane) => box(left + lane * CELL, top, CELL, text, text ? 'lane' : 'idle'));
    const name = draw('text', { x: WIDTH / 2, y: top - 30, 'text-anchor': 'middle', class: 'axis-name' }, `workgroup ${now.group}: lanes 0 to ${lanes - 1}`);
    this._svg.replaceChildren(...wires, ...arcs, ...cells, ...boxes, name);
  }
}

function box(x, y, width, text, kind) {
  const shape = draw('rect', { class: `group-box ${kind}`, x: x + 1.5, y: y + 1.5, width: width - 3, height: CELL - 3, rx: 5 });
  const word = draw('text', { class: `group-text ${kind}`, x: x + width / 2, y: y + CELL / 2 + 5, 'text-anchor': 'middle' }, text);
  return draw('g', {}, shape, word);
}

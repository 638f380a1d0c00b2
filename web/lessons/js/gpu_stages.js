// A function at each stage of the compiler, side by side; what belongs together is marked in all of them.

import { counted, showBytes, showCount, showNanoseconds } from '../../js/inspector_parts.js';
import { make, part } from './make.js';

const MOST_NAMED = 6; // kernels

/** A list of lines to point at: with the pointer for a moment, by a click or the arrow keys to stay. */
class List {
  /** @param {HTMLElement} box @param {string} label @param {(item: object | null, stays: boolean) => void} pointed */
  constructor(box, label, pointed) {
    this._box = box;
    this._pointed = pointed;
    this.items = [];
    this._active = -1;
    box.className = 'stage-list';
    box.tabIndex = 0;
    for (const [name, value] of [['role', 'listbox'], ['aria-label', label], ['aria-multiselectable', 'true']]) box.setAttribute(name, value);
    const at = (event) => this.items.findIndex(({ element }) => element.contains(event.target));
    box.addEventListener('pointerover', (event) => at(event) >= 0 && pointed(this.items[at(event)], false));
    box.addEventListener('pointerleave', () => pointed(null, false));
    box.addEventListener('click', (event) => at(event) >= 0 && this._stay(at(event)));
    box.addEventListener('keydown', (event) => this._key(event));
  }

  /** @param {{text: string, kind?: string}[]} items an `element` is added to each */
  fill(items) {
    this.items = items;
    this._active = -1;
    this._box.removeAttribute('aria-activedescendant');
    for (const [i, item] of items.entries()) {
      item.element = make('div', { id: `${this._box.id}-${i}`, className: `stage-line ${item.kind ?? ''}` }, item.text || ' ');
      item.element.setAttribute('role', 'option');
      if (!item.text.trim()) item.element.setAttribute('aria-label', 'an empty line');
    }
    this._box.replaceChildren(...items.map(({ element }) => element));
    this._box.scrollTop = 0;
  }

  /** Marks the items for which `linked` holds; shows the first of them where it `stays`. */
  mark(linked, stays) {
    let first = null;
    for (const item of this.items) {
      const is = linked(item);
      item.element.setAttribute('aria-selected', String(is));
      if (is) first ??= item.element;
    }
    if (first && stays && !this._box.contains(document.activeElement)) this._show(first);
  }

  _stay(i) {
    this.items[this._active]?.element.removeAttribute('data-active');
    this._active = i;
    const { element } = this.items[i];
    element.setAttribute('data-active', '');
    this._box.setAttribute('aria-activedescendant', element.id);
    this._show(element);
    this._pointed(this.items[i], true);
  }

  _key(event) {
    const last = this.items.length - 1;
    const to = { ArrowDown: Math.min(last, this._active + 1), ArrowUp: Math.max(0, this._active - 1), Home: 0, End: last }[event.key];
    if (to === undefined || last < 0) return;
    event.preventDefault();
    this._stay(to);
  }

  /** Scrolls within the box; the page stays where it is. */
  _show(element) {
    const { offsetTop: top, offsetHeight: height } = element;
    const { scrollTop, clientHeight } = this._box;
    if (top < scrollTop || top + height > scrollTop + clientHeight) this._box.scrollTop = top - clientHeight / 3;
  }
}

export class Stages {
  constructor() {
    const pointed = (item, stays) => this._point(item, stays);
    this._lists = {
      source: new List(part('source'), 'Lines of Python', pointed),
      traced: new List(part('traced'), 'Operations as they were traced', pointed),
      graph: new List(part('graph'), 'Operations after the passes', pointed),
      kernels: new List(part('kernels'), 'Kernels', pointed),
      wgsl: new List(part('wgsl'), 'Lines of WGSL', pointed),
    };
    this._wgslOf = null;
    this._kept = null; // what is marked when nothing is pointed at
  }

  /** @param {object} told a message of `tensorgrad_page.stages` @param {string} way */
  show(told, way) {
    const { source, traced, graph, ways } = told;
    this._told = told;
    this._kernels = ways[way].kernels;
    this._lists.source.fill(source.map((text, i) => ({ text, stage: 'source', lines: [i + 1] })));
    const node = (stage) => ({ id, text, line, kind }) => ({ text, kind, stage, id, lines: line ? [line] : [] });
    this._lists.traced.fill(traced.map(node('traced')));
    this._lists.graph.fill(graph.map(node('graph')));
    this._lists.kernels.fill(this._kernels.map((kernel, index) => ({
      text: kernelText(kernel, index), stage: 'kernels', index, lines: kernel.lines, nodes: kernel.nodes,
    })));
    this._wgslOf = null;
    this._lists.wgsl.fill([]);
    const uses = (line) => graph.filter((node) => node.line === line && node.kind === 'operation').length;
    const lines = source.map((_, i) => i + 1);
    const most = lines.reduce((best, line) => (uses(line) >= uses(best) ? line : best), 1);
    this._point(this._lists.source.items[most - 1] ?? null, true);
  }

  /** Writes the time of each kernel beside it. @param {number[]} seconds */
  times(seconds) {
    seconds.forEach((time, index) => {
      const item = this._lists.kernels.items[index];
      if (item) item.element.textContent = kernelText(this._kernels[index], index, time);
    });
  }

  _point(item, stays) {
    if (stays) this._kept = item;
    const shown = item ?? this._kept;
    if (!shown) return;
    const linked = this._linked(shown);
    const first = [...linked.kernels][0];
    if (shown.stage !== 'wgsl' && first !== undefined) this._write(first);
    this._lists.source.mark(({ lines }) => linked.lines.has(lines[0]), stays);
    this._lists.traced.mark((other) => (shown.stage === 'traced' ? other === shown : linked.lines.has(other.lines[0])), stays);
    this._lists.graph.mark(({ id }) => linked.nodes.has(id), stays);
    this._lists.kernels.mark(({ index }) => linked.kernels.has(index), stays);
    const whole = shown.stage === 'kernels';
    this._lists.wgsl.mark((line) => line === shown || (!whole && shown.stage !== 'wgsl' && line.nodes.some((id) => linked.nodes.has(id))), stays);
    if (stays) this._say(shown, linked);
  }

  /** The lines, operations after the passes and kernels that belong to an item, as far as the compiler tells. */
  _linked(item) {
    const { graph } = this._told;
    const lines = new Set(item.lines);
    let nodes;
    if (item.nodes) nodes = new Set(item.nodes);
    else if (item.stage === 'graph') nodes = new Set([item.id]);
    else nodes = new Set(graph.filter(({ line }) => line && lines.has(line)).map(({ id }) => id));
    if (item.stage === 'wgsl') {
      for (const { id, line } of graph) if (line && nodes.has(id)) lines.add(line);
      return { lines, nodes, kernels: new Set([this._wgslOf]) };
    }
    if (item.stage === 'kernels') return { lines, nodes, kernels: new Set([item.index]) };
    const computes = (kernel) => kernel.nodes.some((id) => nodes.has(id));
    const reads = (kernel) => kernel.wgsl.some(([, named]) => named.some((id) => nodes.has(id)));
    const found = (test) => this._kernels.flatMap((kernel, index) => (test(kernel) ? [index] : []));
    const computing = found(computes);
    return { lines, nodes, kernels: new Set(computing.length ? computing : found(reads)) };
  }

  /** Shows the WGSL of a kernel. */
  _write(index) {
    if (this._wgslOf === index) return;
    this._wgslOf = index;
    const { name, wgsl, threads, workgroup, why, buffers } = this._kernels[index];
    part('wgsl-of').textContent = `WGSL of kernel ${index}, ${name}: ${showCount(threads)} invocations in workgroups of ${workgroup}`;
    part('why').replaceChildren(...[...why, ...buffers].map((text) => make('li', {}, text)));
    this._lists.wgsl.fill(wgsl.map(([text, nodes]) => ({ text, nodes, stage: 'wgsl', lines: [] })));
  }

  _say({ stage, text, index }, { lines, nodes, kernels }) {
    const operations = this._told.graph.filter(({ id, kind }) => kind === 'operation' && nodes.has(id)).length;
    const what = {
      source: () => `“${text.trim()}” became`, traced: () => `${text.split(':')[0]} and its line became`,
      graph: () => `${text.split(':')[0]} is`, kernels: () => `Kernel ${index} computes`, wgsl: () => 'This line of WGSL names',
    }[stage]();
    const names = kernels.size > MOST_NAMED ? counted(kernels.size, 'kernel') : kernels.size && `kernel ${[...kernels].join(', ')}`;
    const where = stage === 'kernels' ? `, of line ${[...lines].join(', ')}` : names ? `, in ${names}` : '';
    part('link').textContent = `${what} ${counted(operations, 'operation')}${where}.`;
  }
}

function kernelText({ name, nbytes, formula }, index, seconds) {
  const time = seconds === undefined ? '' : `, ${showNanoseconds(seconds * 1e9)}`;
  return `${index}  ${name}: ${showBytes(nbytes)}${time}\n${formula.map((line) => `   ${line}`).join('\n')}`;
}

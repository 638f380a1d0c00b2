// The graph of a program, folded by its parts, the functions of the program and their lines, down to the single operation;
// arcs tell which line reads which.

import { counted, draw, lineLink, make, opener, showCount } from './inspector_parts.js';

const PARTS = { forward: 'Forward', backward: 'Backward', update: 'Update' };
const MOST_OPS = 4; // kinds of operations that a folded line names

export class Graph {
  constructor(box, host) {
    this._box = box;
    this._host = host;
    this._resized = new ResizeObserver(() => this._arc());
  }

  async show() {
    const found = await this._host.ask('graph');
    if (found.error) return found.error;
    this._found = found;
    this._arcs = draw('svg', { class: 'graph-arcs', 'aria-hidden': 'true' });
    this._lines = found.rows.map((row, i) => this._line(row, i));
    this._list = make('div', 'graph-rows', this._arcs);
    const all = found.rows.map((row, i) => ({ ...row, i }));
    const parts = runs(all, ({ part }) => part);
    for (const part of parts) {
      const into = parts.length > 1 ? this._fold('h3', PARTS[part[0].part], part, this._list) : this._list;
      for (const lines of runs(part, ({ scope }) => scope)) {
        const box = lines.length > 1 ? this._fold('h4', lines[0].scope, lines, into) : into;
        box.append(...lines.map(({ i }) => this._lines[i].line));
      }
    }
    const words = `${counted(found.nodes, 'operation')} after all passes, from ${counted(found.rows.length, 'line')}. An arc leads from a line to one that it reads.`;
    this._box.append(make('p', 'inspector-summary', words), this._list);
    this._resized.disconnect();
    this._resized.observe(this._list);
    return undefined;
  }

  /** A heading that folds what comes below it. @returns {HTMLElement} where that is to be put */
  _fold(tag, name, lines, into) {
    const count = lines.reduce((sum, line) => sum + line.count, 0);
    const button = make('button', 'graph-open', `${name}: ${counted(count, 'operation')} from ${counted(lines.length, 'line')}`);
    button.type = 'button';
    const box = make('div', 'graph-fold');
    opener(button, box, () => {});
    button.click();
    into.append(make(tag, 'graph-part', button), box);
    return box;
  }

  /** The heading of the largest fold that hides a line; the line itself where it can be seen. */
  _seen(line) {
    return this._folds(line).at(-1)?.previousElementSibling ?? line;
  }

  /** The folded boxes that a line is in, from the inside to the outside. */
  _folds(line) {
    const found = [];
    for (let box = line.parentElement; box !== this._list; box = box.parentElement) if (box.hidden) found.push(box);
    return found;
  }

  _line({ site, count, ops }, i) {
    const open = make('button', 'graph-open', site?.text || (site ? `in ${site.in}` : 'no line of yours'));
    open.type = 'button';
    const more = ops.length > MOST_OPS ? ` and ${ops.length - MOST_OPS} more` : '';
    const names = make('span', 'graph-ops', `${showCount(count)}: ${ops.slice(0, MOST_OPS).join(', ')}${more}`);
    const nodes = make('ul', 'graph-nodes');
    nodes.hidden = true;
    opener(open, nodes, () => this._unfold(nodes, site, i));
    const line = make('div', 'graph-line', make('div', 'graph-head', open, names, lineLink(site, this._host)), nodes);
    line.addEventListener('pointerenter', () => this._mark(i));
    line.addEventListener('focusin', () => this._mark(i));
    return { line, open, nodes };
  }

  async _unfold(box, site, i) {
    const { nodes, error } = await this._host.ask('nodes', { row: i });
    if (error) box.append(make('li', '', error));
    else box.append(...nodes.map((node) => this._node(node, site)));
  }

  /** `%12: f32[8, 4] = add(%3, %5)`: the result leads to the line of the program, an operand to its node. */
  _node({ id, result, call, inputs, ends }, site) {
    const item = make('li');
    item.dataset.node = id;
    item.tabIndex = -1;
    const name = make('button', '', `%${id}`);
    name.type = 'button';
    name.title = site?.text ?? '';
    name.addEventListener('click', () => {
      if (site && !this._host.select(site.line, site.text)) this._host.say('This line is not in the program now.');
    });
    const rows = new Map(inputs.map(([node, row]) => [`%${node}`, { node, row }]));
    const parts = call.split(/(%\d+)/).map((part) => (rows.has(part) ? this._operand(part, rows.get(part)) : part));
    item.append(name, result.slice(`%${id}`.length), ' = ', ...parts);
    if (ends.length) item.append(make('span', 'graph-ends', `  (${ends.join(', ')})`));
    return item;
  }

  _operand(text, { node, row }) {
    const link = make('button', '', text);
    link.type = 'button';
    link.addEventListener('click', () => this._visit(node, row));
    return link;
  }

  async _visit(node, row) {
    const { line, open, nodes } = this._lines[row];
    for (const box of this._folds(line)) box.previousElementSibling.firstElementChild.click();
    if (nodes.hidden) open.click();
    for (let tries = 0; tries < 100 && !nodes.hasChildNodes(); tries++) await new Promise((done) => setTimeout(done, 50));
    const item = nodes.querySelector(`[data-node="${node}"]`);
    item?.scrollIntoView({ block: 'center' });
    item?.focus({ preventScroll: true });
  }

  /** Draws the arcs where the lines are now. */
  _arc() {
    const width = this._arcs.clientWidth;
    if (!width) return; // not in sight
    const height = this._list.scrollHeight;
    for (const [name, value] of [['height', height], ['viewBox', `0 0 ${width} ${height}`]]) this._arcs.setAttribute(name, value);
    const middle = this._lines.map(({ line }) => this._seen(line).offsetTop + 17);
    const paths = this._found.rows.flatMap(({ reads }, i) =>
      reads.filter((from) => middle[from] !== middle[i]).map((from) => { // within a fold there is nothing to see
        const far = Math.abs(middle[i] - middle[from]);
        const out = width - Math.min(width - 3, 10 + far / 8);
        return draw('path', { d: `M${width} ${middle[from]}C${out} ${middle[from]} ${out} ${middle[i]} ${width} ${middle[i]}`, 'data-ends': `${from} ${i}` });
      }),
    );
    this._arcs.replaceChildren(...paths);
    if (this._near !== undefined) this._mark(this._near);
  }

  _mark(i) {
    this._near = i;
    for (const path of this._arcs.children) path.classList.toggle('near', path.dataset.ends.split(' ').includes(String(i)));
  }
}

/** Neighbours that are alike, together. */
function runs(all, kind) {
  const found = [];
  for (const one of all) {
    if (found.length && kind(found.at(-1)[0]) === kind(one)) found.at(-1).push(one);
    else found.push([one]);
  }
  return found;
}

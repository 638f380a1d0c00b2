// The kernels of a program in their order; of each on request why it is one, its WGSL, and its time.

import { bar, cell, counted, lineLink, make, opener, role, showBytes, showCount, showFlops, showNanoseconds, showNumber } from './inspector_parts.js';

const SORTED = { Kernel: 'ascending', Time: 'descending' }; // the headings that sort, and which way
const HEADINGS = ['Kernel', 'Threads', 'Moved', 'Work', 'Time', 'GB/s', 'GFLOP/s'];

export class Kernels {
  /** @param {HTMLElement} box @param {object} host as of `Inspector`, with its `ask` */
  constructor(box, host) {
    this._box = box;
    this._host = host;
  }

  /** @returns {Promise<string | undefined>} what is wrong, if something is */
  async show() {
    const found = await this._host.ask('kernels');
    if (found.error) return found.error;
    const total = `${counted(found.rows.length, 'kernel')}, ${showFlops(found.flops)} and ${showBytes(found.nbytes)} moved in a run, estimated`;
    this._summary = make('p', 'inspector-summary', found.note ? `${total}; ${found.note}.` : `${total}.`);
    this._measure = make('button', '', 'Measure');
    this._measure.type = 'button';
    this._measure.disabled = Boolean(found.unmeasured);
    this._measure.title = 'Runs up to 7 training steps, which count, and times each kernel';
    this._measure.addEventListener('click', () => this._time());
    this._measured = make('p', 'inspector-summary measured', found.unmeasured || 'Measure runs up to 7 training steps, which count as yours do, and shows the median time of each kernel.');
    this._measured.setAttribute('role', 'status');
    this._rows = found.rows.map((row, index) => this._row(row, index));
    this._headings = HEADINGS.map((heading, i) => this._heading(heading, i));
    const head = role('rowgroup', make('div', 'kernel-head', role('row', make('div', 'kernel-row', ...this._headings))));
    this._table = role('table', make('div', 'kernel-table', head));
    this._table.setAttribute('aria-label', 'Kernels');
    this._sort('Kernel');
    this._box.append(make('div', 'inspector-lead', this._measure, make('div', '', this._measured, this._summary)), this._table);
    return undefined;
  }

  _heading(heading, i) {
    const content = SORTED[heading] ? make('button', 'kernel-sort', heading) : heading;
    if (SORTED[heading]) {
      content.type = 'button';
      content.title = heading === 'Time' ? 'The slowest first' : 'In the order in which they run';
      content.disabled = heading === 'Time'; // until there are times
      content.addEventListener('click', () => this._sort(heading));
    }
    return role('columnheader', make('div', i ? 'number' : '', content));
  }

  /** By time, or in the order in which they run. */
  _sort(heading) {
    this._sorted = heading;
    this._headings.forEach((cell) => cell.removeAttribute('aria-sort'));
    this._headings[HEADINGS.indexOf(heading)].setAttribute('aria-sort', SORTED[heading]);
    const rows = heading === 'Time' ? [...this._rows].sort((a, b) => b.nanoseconds - a.nanoseconds) : this._rows;
    this._table.append(...rows.map(({ group }) => group));
  }

  _row(row, index) {
    const name = make('button', 'kernel-name', make('span', 'kernel-index', String(index)), row.name);
    name.type = 'button';
    const times = ['time', 'gbps', 'gflops'].map((kind) => cell(`number ${kind}`, '–'));
    const formula = make('code', 'kernel-formula', firstStore(row.formula));
    const line = role('row', make('div', 'kernel-row', cell('kernel-what', name, formula),
      ...[showCount(row.threads), showBytes(row.nbytes), showFlops(row.flops)].map((text) => cell('number', text)),
      ...times));
    const detail = make('div', 'kernel-detail');
    detail.setAttribute('aria-colspan', String(HEADINGS.length));
    const box = role('row', make('div', 'kernel-more', role('cell', detail)));
    box.hidden = true;
    opener(name, detail, () => this._detail(detail, row, index));
    name.addEventListener('click', () => (box.hidden = detail.hidden));
    ['Threads', 'Moved', 'Work'].forEach((heading, i) => (line.children[i + 1].dataset.heading = heading));
    ['Time', 'GB/s', 'GFLOP/s'].forEach((heading, i) => (times[i].dataset.heading = heading));
    return { group: role('rowgroup', make('div', 'kernel', line, box)), times, nanoseconds: 0 };
  }

  async _detail(box, row, index) {
    const { error, why, bindings, sites, workgroup, wgsl } = await this._host.ask('kernel', { index });
    if (error) {
      box.append(make('p', '', error));
      return;
    }
    const show = make('button', '', 'WGSL');
    show.type = 'button';
    const text = make('pre', 'code-box', wgsl);
    text.hidden = true;
    text.tabIndex = 0;
    opener(show, text, () => {});
    const loops = `loops over ${row.space.join(' × ')}, in workgroups of ${workgroup}`;
    box.append(
      section('Formula', make('pre', 'code-box', row.formula)),
      section('Why it is one kernel', list(why)),
      section('Buffers', list(bindings)),
      section('Your lines', make('p', 'line-links', ...sites.map((site) => lineLink(site, this._host)))),
      make('p', 'kernel-source', show, ` ${loops}`),
      text,
    );
    for (const pre of box.querySelectorAll('pre')) pre.tabIndex = 0;
  }

  async _time() {
    const focused = document.activeElement === this._measure;
    this._measure.disabled = true;
    this._measured.textContent = 'Steps are timed, as soon as it is their turn …';
    const found = await this._host.ask('profile');
    this._measure.disabled = false;
    if (focused && document.activeElement === document.body) this._measure.focus(); // a disabled button loses it
    if (found.error) {
      this._measured.textContent = found.error;
      return;
    }
    const { peaks } = found;
    const against = peaks ? `; bars against ${showNumber(peaks.gbps)} GB/s and ${showNumber(peaks.gflops)} GFLOP/s, measured here` : '';
    const { steps, measured } = found;
    const how = `the median of ${counted(measured, 'step')} after ${steps - measured} to warm up; all ${steps} count as training`;
    this._measured.textContent = `${showNanoseconds(found.nanoseconds)} of a step, ${found.note}, ${how}${against}.`;
    if (found.of !== 'kernel') return; // of nodes: there is no GPU, and no kernel has run
    const [slowest] = found.rows;
    const longest = slowest.nanoseconds || 1;
    const part = Math.round((100 * longest) / (found.nanoseconds || 1));
    this._measured.textContent += ` The slowest is ${slowest.index} ${slowest.name}: ${part}%.`;
    const fastest = peaks ?? { gbps: Math.max(...found.rows.map(({ gbps }) => gbps)), gflops: Math.max(...found.rows.map(({ gflops }) => gflops)) };
    for (const row of found.rows) {
      this._rows[row.index].nanoseconds = row.nanoseconds;
      this._timed(this._rows[row.index].times, row, longest, fastest);
    }
    this._rows[slowest.index].times[0].append(make('span', 'kernel-slowest', 'slowest'));
    this._headings[HEADINGS.indexOf('Time')].firstChild.disabled = false;
    this._sort(this._sorted);
  }

  _timed([time, gbps, gflops], row, longest, fastest) {
    time.replaceChildren(showNanoseconds(row.nanoseconds), bar(row.nanoseconds / longest));
    gbps.replaceChildren(showNumber(row.gbps), bar(row.gbps / fastest.gbps, row.bound === 'memory' ? 'bound' : ''));
    gflops.replaceChildren(showNumber(row.gflops), bar(row.gflops / fastest.gflops, row.bound === 'compute' ? 'bound' : ''));
    const near = row.of_peak === null ? '' : `${Math.round(row.of_peak * 100)}% of the ${row.bound} peak`;
    for (const one of [gbps, gflops]) one.title = near;
  }
}

/** The line of a formula that stores something; those before it name parts. Where it stores such a part only, all of them. */
function firstStore(formula) {
  const lines = formula.split('\n').map((line) => line.trim());
  const store = lines.find((line) => !/^v\d+ =/.test(line)) ?? '';
  return store && !/= v\d+$/.test(store) ? store : lines.join('; ');
}

function section(title, content) {
  return make('section', '', make('h3', '', title), content);
}

function list(lines) {
  return make('ul', '', ...lines.map((line) => make('li', '', line)));
}

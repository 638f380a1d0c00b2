// The plan of a program's memory: what is there all the time, and what temporaries need from kernel to kernel.

import { bar, counted, draw, make, role, showBytes, showCount } from './inspector_parts.js';

const LISTED = 24; // buffers of a kind of list that are shown at once

export class Memory {
  constructor(box, host) {
    this._box = box;
    this._host = host;
  }

  async show() {
    const found = await this._host.ask('memory');
    if (found.error) return found.error;
    const { total, kinds, resident, pooled, needed, peak, pool, unpooled, note } = found;
    this._box.append(make('p', 'inspector-summary', `${showBytes(total)} of device memory${note && `; ${note}`}.`), kindTable(kinds));
    if (pooled.length) {
      const values = pooled.reduce((sum, { values }) => sum + values.length, 0);
      this._box.append(
        make('h3', '', 'Temporaries, from the first kernel to the last'),
        make('p', 'inspector-summary',
          `${counted(values, 'value')} in ${counted(pooled.length, 'buffer')} of ${showBytes(pool)}; apart they would take ${showBytes(unpooled)}. ` +
          `Most are needed at kernel ${peak[1]}: ${showBytes(peak[0])}.`),
        rows('Temporaries over the kernels', [
          needs(needed, peak),
          ...longest(pooled).map((buffer, i) => pool_row(buffer, needed.length, i)),
        ]),
        axis(needed.length),
      );
    }
    this._box.append(make('h3', '', 'There all the time'), listed(longest(resident), (one) => residentRow(one, resident)));
    return undefined;
  }
}

const longest = (buffers) => [...buffers].sort((a, b) => b.nbytes - a.nbytes);

function kindTable(kinds) {
  const most = Math.max(...kinds.map(([, , nbytes]) => nbytes), 1);
  return rows('Memory by kind', kinds.map(([words, count, nbytes]) =>
    row(words, `${showCount(count)}, ${showBytes(nbytes)}`, bar(nbytes / most, 'bound'))));
}

/** What temporaries need at each kernel, as steps. */
function needs(needed, [most, at]) {
  const path = needed.map((bytes, i) => `V${1 - bytes / (most || 1)}H${i + 1}`).join('');
  const picture = chart(needed.length, 1, draw('path', { d: `M0 1${path}V1Z`, class: 'needed' }),
    draw('rect', { x: at, y: 0, width: 1, height: 1, class: 'peak' }, draw('title', {}, `most: kernel ${at}, ${showBytes(most)}`)));
  picture.classList.add('tall');
  return row('needed at a time', showBytes(most), picture);
}

function pool_row({ name, nbytes, values }, kernels, i) {
  const bars = values.map(([first, last, size, what], n) =>
    draw('rect', { x: first, y: 0, width: last - first + 1, height: 1, class: `life ${n % 2 ? 'odd' : ''}` },
      draw('title', {}, `${what}, ${showBytes(size)}: kernels ${first} to ${last}`)));
  const picture = chart(kernels, 1, ...bars);
  picture.setAttribute('role', 'img');
  const held = values.map(([first, last, , what]) => `${what} in kernels ${first} to ${last}`).join('; ');
  picture.setAttribute('aria-label', i < LISTED ? held : `${values.length} values`);
  return row(name, showBytes(nbytes), picture);
}

function residentRow({ name, what, nbytes }, all) {
  const most = Math.max(...all.map((one) => one.nbytes), 1);
  return row(name, showBytes(nbytes), make('span', 'resident', bar(nbytes / most), make('span', 'resident-kind', what)));
}

/** Rows, at first not all of a long list. */
function listed(items, toRow) {
  const table = rows('Buffers that are there all the time', items.slice(0, LISTED).map(toRow));
  if (items.length <= LISTED) return table;
  const more = make('button', '', `${showCount(items.length - LISTED)} smaller ones`);
  more.type = 'button';
  more.addEventListener('click', () => {
    table.append(...items.slice(LISTED).map(toRow));
    more.remove();
  });
  return make('div', '', table, more);
}

function chart(width, height, ...content) {
  return draw('svg', { viewBox: `0 0 ${width} ${height}`, preserveAspectRatio: 'none', class: 'memory-chart' }, ...content);
}

function axis(kernels) {
  return make('p', 'memory-axis', make('span', '', 'kernel 0'), make('span', '', `kernel ${kernels - 1}`));
}

function rows(label, content) {
  const table = role('table', make('div', 'memory-rows', ...content));
  table.setAttribute('aria-label', label);
  return table;
}

function row(name, size, picture) {
  const label = role('rowheader', make('div', 'memory-name', name));
  label.title = name;
  return role('row', make('div', 'memory-row', label, role('cell', make('div', 'number', size)), role('cell', make('div', '', picture))));
}

// What the inspector's tabs are made of: elements, numbers with their units, links to lines of the program.

/** An element with a class, and what stands in it. */
export function make(tag, className = '', ...content) {
  const made = document.createElement(tag);
  if (className) made.className = className;
  made.append(...content);
  return made;
}

/** A drawn element, with its attributes. */
export function draw(tag, attributes = {}, ...content) {
  const made = document.createElementNS('http://www.w3.org/2000/svg', tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...content);
  return made;
}

/** A cell of a table that is laid out as a grid. */
export function cell(className, ...content) {
  return role('cell', make('div', className, ...content));
}

export function role(name, element) {
  element.setAttribute('role', name);
  return element;
}

/** "640 B", "12.5 kB": decimal units, as in GB/s. */
export const showBytes = (bytes) => scaled(bytes, ['B', 'kB', 'MB', 'GB', 'TB']);
export const showFlops = (flops) => scaled(flops, ['flop', 'kflop', 'Mflop', 'Gflop', 'Tflop']);
export const showNanoseconds = (time) => scaled(time, ['ns', 'µs', 'ms', 's']);
export const showCount = (number) => number.toLocaleString('en');

/** "1 kernel", "2 kernels" */
export const counted = (number, noun) => `${showCount(number)} ${noun}${number === 1 ? '' : 's'}`;

/** Three digits: "0.00123", "12.3", "4,560". */
export function showNumber(number) {
  if (number === null) return '–';
  const size = Math.abs(number);
  if (size >= 1000 && size < 1e6) return showCount(Math.round(number));
  return size && (size < 1e-3 || size >= 1e6) ? number.toExponential(2) : String(Number(number.toPrecision(3)));
}

function scaled(number, units) {
  let i = 0;
  while (number >= 999.5 && i < units.length - 1) {
    number /= 1000;
    i += 1;
  }
  return `${i === 0 || number >= 100 ? Math.round(number) : Number(number.toPrecision(3))} ${units[i]}`;
}

/** A bar whose length is a part of its box. */
export function bar(part, kind = '') {
  const filled = make('span', `bar-filled ${kind}`);
  filled.style.inlineSize = `${Math.min(1, Math.max(0, part)) * 100}%`;
  return make('span', 'bar', filled);
}

/** A button that marks a line of the user's in the program. */
export function lineLink(site, host) {
  if (!site) return make('span', 'line-link none', 'no line of yours');
  const link = make('button', 'line-link', `${site.file.startsWith('<') ? 'line' : `${site.file}:`} ${site.line}`);
  link.type = 'button';
  link.title = site.text || `in ${site.in}`;
  link.addEventListener('click', () => {
    if (!host.select(site.line, site.text)) host.say(`This line is not in the program now: ${site.text || site.file}`);
  });
  return link;
}

/** A button that opens and closes what `fill` makes when it is opened first. */
export function opener(button, box, fill) {
  button.setAttribute('aria-expanded', 'false');
  button.addEventListener('click', async () => {
    const open = button.getAttribute('aria-expanded') !== 'true';
    button.setAttribute('aria-expanded', String(open));
    box.hidden = !open;
    if (open && !box.hasChildNodes()) await fill(box);
  });
}

// The site's style sheets as they hold within a shadow root in somebody's page. There the host takes the place of the
// root, the size of the root's type is not ours, and the width that counts is that of the cell, not that of the window.

const SITE = new URL('../', import.meta.url);
const NAMES = ['tokens', 'page', 'repl', 'code', 'lesson', 'chart', 'embed'];
const FILES = ['vendor/uPlot.min.css', ...NAMES.map((name) => `css/${name}.css`)];
const REM = 16; // px
const NARROW = 560; // px of a cell from which the rules for phones hold

let loaded = null;

/** @returns {Promise<CSSStyleSheet[]>} loaded once for all cells */
export function styles() {
  return (loaded ??= Promise.all(FILES.map(load)));
}

async function load(file) {
  const url = new URL(file, SITE);
  const response = await fetch(url);
  if (!response.ok) throw new Error(`${url}: ${response.status} ${response.statusText}`);
  return new CSSStyleSheet().replace(withinShadow(await response.text()));
}

function withinShadow(css) {
  return css
    .replaceAll(':root', ':host')
    .replace(/(\d*\.?\d+)rem\b/g, (_, size) => `${size * REM}px`)
    .replace(/@media \(max-width: \d+px\)/g, `@container (max-width: ${NARROW}px)`);
}

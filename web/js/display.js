// What `display(value)` shows. HTML comes from the user's program, or from one that a link brought:
// it is built anew from a list of what is harmless, so it can neither run code nor load anything.

const TAGS = new Set(
  ('a abbr b blockquote br caption code col colgroup dd del details div dl dt em figcaption figure h1 h2 h3 h4 h5 h6 hr ' +
    'i img ins kbd li mark ol p pre q s samp small span strong sub summary sup table tbody td tfoot th thead tr u ul var').split(' '),
);
const DROPPED = new Set(
  'audio base button canvas embed form frame frameset head iframe input link math meta noscript object option script select style svg template textarea title video'.split(' '),
);
const ATTRIBUTES = new Set(['alt', 'colspan', 'height', 'lang', 'open', 'rowspan', 'scope', 'span', 'start', 'title', 'width']);
const IMAGE = /^data:image\/(png|jpeg|gif|webp|svg\+xml)[;,]/;
const SHOWN_SIDE = 320; // px that a small picture is magnified to, at most
const MOST_TIMES = 8;

/** @param {string} text a message of `tensorgrad_page.displaying` */
export function shown(text) {
  const message = JSON.parse(text);
  if (message.kind === 'html') {
    const box = make('div', 'shown-html');
    box.append(...harmless(new DOMParser().parseFromString(unstyled(message.data), 'text/html').body));
    return box;
  }
  if (message.kind === 'text') return make('pre', 'entry-text value columns', message.data);
  const figure = make('figure', 'shown-image');
  const image = make('img');
  image.alt = message.alt;
  image.src = `data:image/${message.kind === 'svg' ? 'svg+xml' : 'png'};base64,${message.data}`;
  figure.append(image);
  if (message.width) {
    const times = Math.min(MOST_TIMES, Math.floor(SHOWN_SIDE / Math.max(message.width, message.height))) || 1;
    image.width = message.width * times;
    image.height = message.height * times;
    image.classList.add('pixels');
    figure.append(make('figcaption', '', message.alt));
  }
  return figure;
}

function make(tag, className = '', text = '') {
  const made = document.createElement(tag);
  made.className = className;
  made.textContent = text;
  return made;
}

/** Styles under another name: the page's policy forbids them, and the browser would complain of each. */
function unstyled(html) {
  return html.replace(/<[^<>]*>/g, (tag) => tag.replace(/\bstyle(?=\s*=)/gi, 'data-style'));
}

function harmless(parent) {
  return [...parent.childNodes].flatMap((node) => {
    if (node.nodeType === Node.TEXT_NODE) return [document.createTextNode(node.data)];
    const tag = node.localName;
    if (node.nodeType !== Node.ELEMENT_NODE || DROPPED.has(tag)) return [];
    if (!TAGS.has(tag)) return harmless(node);
    const made = document.createElement(tag);
    for (const { name, value } of node.attributes) {
      if (ATTRIBUTES.has(name)) made.setAttribute(name, value);
    }
    // The alignment of a cell is the one style that tables need.
    if (/text-align:\s*right/.test(node.dataset.style ?? '')) made.classList.add('right');
    if (tag === 'a' && /^https?:/i.test(node.getAttribute('href') ?? '')) {
      Object.assign(made, { href: node.getAttribute('href'), target: '_blank', rel: 'noopener noreferrer' });
    }
    if (tag === 'img') {
      if (!IMAGE.test(node.getAttribute('src') ?? '')) return [document.createTextNode(node.alt)];
      made.src = node.getAttribute('src');
    }
    made.append(...harmless(node));
    return [made];
  });
}

// The site's service worker. It goes to the network first, so that a page is never older than its site; without a network
// it answers from what it keeps. It also gives pages and workers the headers that some static hosts cannot set: those of
// cross-origin isolation, with which a busy loop of Python can be interrupted.

const VERSION = 'unversioned'; // of the site's files; the build writes it here, so that a new site is a new service worker
const OURS = `tensorgrad ${self.registration.scope} `; // another copy of the site on this host keeps its own
const CACHE = OURS + VERSION;
const ISOLATED = new Set(['document', 'iframe', 'worker', 'sharedworker']);
const HEADERS = { 'Cross-Origin-Opener-Policy': 'same-origin', 'Cross-Origin-Embedder-Policy': 'require-corp' };
const DOCS = new URL('docs/', self.registration.scope).href; // hundreds of pages, which are kept as one packed file
const PACKED = new URL('pages.bin', DOCS).href;
const AT_ONCE = 4;
// The browser keeps the machine code of WebAssembly that it fetched itself; what it was handed by a service worker it
// compiles anew at the next visit. So these are left to it, unless the network did not answer just now.
const COMPILED = new URL('pyodide/', self.registration.scope).href;
let reachable = true;

self.addEventListener('install', () => self.skipWaiting());
self.addEventListener('activate', (event) => event.waitUntil(self.clients.claim()));
self.addEventListener('fetch', (event) => {
  const { request } = event;
  // Of the site, or what it takes from a CDN with a hash.
  const ours = request.url.startsWith(self.registration.scope) || request.integrity;
  if (request.method !== 'GET' || !ours) return;
  if (reachable && navigator.onLine && request.url.startsWith(COMPILED)) return;
  event.respondWith(answer(request));
});
// The page asks once Python is there: a first visit does not load everything twice at the same time.
self.addEventListener('message', (event) => {
  if (event.data === 'keep') event.waitUntil(keep().then((whole) => event.source?.postMessage({ type: 'kept', whole })));
});

/** Fetches what is not kept of this version yet; each file has to be that of the list. Resolves to whether all is there. */
async function keep() {
  try {
    const list = await (await fetch('files.json', { cache: 'no-cache' })).json();
    if (list.version !== VERSION) return false; // between two versions of the site; the next visit tries again
    const cache = await caches.open(CACHE);
    const have = new Set((await cache.keys()).map(({ url }) => url));
    const missing = Object.entries(list.files).filter(([file]) => !have.has(new URL(file, self.registration.scope).href));
    const work = async () => {
      for (let next = missing.shift(); next; next = missing.shift()) {
        const [file, integrity] = next;
        const response = await fetch(new URL(file, self.registration.scope), { integrity, cache: 'no-cache' });
        if (!response.ok) throw new Error(`${file}: ${response.status}`);
        await cache.put(new URL(file, self.registration.scope), response);
      }
    };
    await Promise.all(Array.from({ length: AT_ONCE }, work));
    for (const name of await caches.keys()) if (name.startsWith(OURS) && name !== CACHE) await caches.delete(name);
    return true;
  } catch (error) {
    console.warn(`The site is not kept for use without a network: ${error.message}`);
    return false;
  }
}

async function answer(request) {
  const response = await fetched(request);
  return response && ISOLATED.has(request.destination) ? isolated(response) : (response ?? Response.error());
}

async function fetched(request) {
  try {
    const response = await fetch(request);
    reachable = true;
    return response;
  } catch {
    reachable = false;
    return kept(request);
  }
}

async function kept(request) {
  const file = fileOf(request);
  const found = await find(file);
  if (found || request.mode !== 'navigate') return found;
  return (await find(`${file}/index.html`)) ? Response.redirect(`${file}/`) : null; // a folder, as servers have it
}

async function find(file) {
  // Not of this version alone: an older one is better than none.
  return (await caches.match(file, { cacheName: CACHE })) ?? (await caches.match(file)) ?? (file.startsWith(DOCS) ? unpacked(file.slice(DOCS.length)) : null);
}

/** A page of the documentation from the file that has all of them. */
async function unpacked(name) {
  const packed = await caches.match(PACKED);
  if (!packed) return null;
  const pages = await new Response(packed.body.pipeThrough(new DecompressionStream('gzip'))).json();
  return Object.hasOwn(pages, name) ? new Response(pages[name], { headers: { 'Content-Type': 'text/html; charset=utf-8' } }) : null;
}

/** Its address without what is asked of it: one file is kept once. */
function fileOf(request) {
  const url = new URL(request.url);
  url.search = url.hash = '';
  if (url.pathname.endsWith('/')) url.pathname += 'index.html';
  return url.href;
}

function isolated(response) {
  if (response.type === 'opaqueredirect' || response.headers.has('Location') || response.headers.has('Cross-Origin-Embedder-Policy')) return response;
  const { status, statusText } = response;
  const headers = new Headers(response.headers);
  for (const [name, value] of Object.entries(HEADERS)) headers.set(name, value);
  return new Response(response.body, { status, statusText, headers });
}

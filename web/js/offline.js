// The service worker's part of the page: isolation where the host sets no headers, and the site without a network.

const SCRIPT = new URL('../service.js', import.meta.url);
const RELOADED = 'tensorgrad.reloaded';
const PATIENCE = 3000; // ms that a service worker may take to start

/**
 * Loads the page again through the service worker where that makes it cross-origin isolated.
 * @returns {Promise<boolean>} whether it does; then nothing else needs to start
 */
export async function isolate() {
  if (self.crossOriginIsolated || !self.isSecureContext || !navigator.serviceWorker || window !== window.top) return false;
  try {
    if (sessionStorage.getItem(RELOADED)) return false; // it did not help
    await navigator.serviceWorker.register(SCRIPT);
    const late = new Promise((_, reject) => setTimeout(() => reject(new Error('it takes too long')), PATIENCE));
    await Promise.race([controlled(), late]);
    sessionStorage.setItem(RELOADED, 'yes');
    location.reload();
    return true;
  } catch (error) {
    console.warn(`The service worker does not start: ${error.message}`);
    return false;
  }
}

/**
 * Has the service worker keep the site.
 * @returns {Promise<boolean>} whether all of it is kept
 */
export async function keepOffline() {
  try {
    await navigator.serviceWorker.register(SCRIPT);
    const { active } = await navigator.serviceWorker.ready;
    const answer = new Promise((resolve) => {
      navigator.serviceWorker.addEventListener('message', ({ data }) => data.type === 'kept' && resolve(data.whole), { once: true });
    });
    active.postMessage('keep');
    return await answer;
  } catch {
    return false; // an insecure address, a private window
  }
}

function controlled() {
  if (navigator.serviceWorker.controller) return Promise.resolve();
  return new Promise((resolve) => navigator.serviceWorker.addEventListener('controllerchange', resolve, { once: true }));
}

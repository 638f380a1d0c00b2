// A <details> that opens over the page, as a menu: it closes by Escape, and when the reader turns to something else.

export function asMenu(details) {
  const close = ({ target }) => {
    if (!details.contains(target)) details.open = false;
  };
  addEventListener('pointerdown', close);
  addEventListener('focusin', close);
  addEventListener('keydown', (event) => {
    if (event.key !== 'Escape' || !details.open) return;
    details.open = false;
    details.querySelector('summary').focus();
  });
}

// The list of completions over the prompt. The editor moves and accepts; this shows.

export class CompletionList {
  /** @param {HTMLElement} list a listbox @param {HTMLTextAreaElement} area the textbox that owns it */
  constructor(list, area, onPick) {
    this._list = list;
    this._area = area;
    this._onPick = onPick;
    this.items = [];
    this.active = -1;
    list.addEventListener('pointerdown', (event) => {
      event.preventDefault(); // the prompt keeps the focus
      const option = event.target.closest('[role=option]');
      if (option) this._onPick(this.items[Number(option.dataset.index)]);
    });
  }

  get open() {
    return !this._list.hidden;
  }

  show(items) {
    this.items = items;
    this.active = -1;
    this._list.replaceChildren(
      ...items.map((item, index) => {
        const option = document.createElement('li');
        option.id = `${this._list.id}-${index}`;
        option.dataset.index = String(index);
        option.setAttribute('role', 'option');
        option.setAttribute('aria-selected', 'false');
        // The name alone: what stands before the dot is in the prompt already.
        option.textContent = item.slice(item.lastIndexOf('.') + 1);
        return option;
      }),
    );
    this._list.hidden = items.length === 0;
    this._list.scrollTop = 0;
    this._area.removeAttribute('aria-activedescendant');
  }

  hide() {
    this.items = [];
    this.active = -1;
    this._list.hidden = true;
    this._list.replaceChildren();
    this._area.removeAttribute('aria-activedescendant');
  }

  /** Moves the mark by `step`, around the ends. */
  move(step) {
    const count = this.items.length;
    if (!count) return;
    this._list.children[this.active]?.setAttribute('aria-selected', 'false');
    this.active = this.active < 0 && step < 0 ? count - 1 : (this.active + step + count) % count;
    const option = this._list.children[this.active];
    option.setAttribute('aria-selected', 'true');
    option.scrollIntoView({ block: 'nearest' });
    this._area.setAttribute('aria-activedescendant', option.id);
  }

  /** The marked item, or null. */
  get picked() {
    return this.items[this.active] ?? null;
  }
}

/** The longest start that all items share. */
export function commonPrefix(items) {
  return items.reduce((prefix, item) => {
    let end = 0;
    while (end < prefix.length && prefix[end] === item[end]) end++;
    return prefix.slice(0, end);
  });
}

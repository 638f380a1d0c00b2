// The files that this browser keeps for Python: a list with their sizes, from which each can be removed.

import { showSize } from './files.js';
import { forgetFile, keptFiles } from './kept_files.js';

export class FileList {
  /**
   * @param {HTMLElement} panel a popover
   * @param {HTMLElement} list
   * @param {HTMLElement} sum where their size is said
   */
  constructor(panel, list, sum) {
    this._panel = panel;
    this._list = list;
    this._sum = sum;
    panel.addEventListener('toggle', ({ newState }) => newState === 'open' && this.show());
  }

  async show() {
    const files = await keptFiles();
    this._list.replaceChildren(...files.map((file) => this._item(file)));
    const bytes = files.reduce((sum, { size }) => sum + size, 0);
    this._sum.textContent = files.length ? `${showSize(bytes)} of 64 MB.` : 'None is kept.';
  }

  _item({ name, size }) {
    const item = document.createElement('li');
    const [label, bytes, button] = ['code', 'span', 'button'].map((tag) => item.appendChild(document.createElement(tag)));
    label.textContent = name;
    bytes.textContent = showSize(size);
    button.type = 'button';
    button.textContent = 'Remove';
    button.setAttribute('aria-label', `Remove ${name}`);
    button.addEventListener('click', () => this._remove(name));
    return item;
  }

  /** Python has it until it is restarted. */
  async _remove(name) {
    await forgetFile(name);
    await this.show();
    this._panel.querySelector('button').focus();
  }
}

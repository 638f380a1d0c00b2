// What another page loads to have runnable cells: <script type="module" src="…/embed.js">, then <tensor-grad>.

import { TensorGrad } from './js/embed_element.js';

if (!customElements.get('tensor-grad')) customElements.define('tensor-grad', TensorGrad);

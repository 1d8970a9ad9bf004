'use strict';
// What all pages share: the data, elements, the theme, the tip under the pointer.
const D = JSON.parse(document.getElementById('data').textContent);
const hash = new URLSearchParams(location.hash.slice(1));  // #theme=dark, and what else a page reads
if (hash.get('theme')) document.documentElement.dataset.theme = hash.get('theme');

// Texts among the children stay texts: nothing in them is read as HTML.
function fill(node, attributes, children) {
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  node.append(...children);
  return node;
}
const el = (name, attributes = {}, ...children) => fill(document.createElement(name), attributes, children);
const svg = (name, attributes = {}, ...children) =>
    fill(document.createElementNS('http://www.w3.org/2000/svg', name), attributes, children);

function themeButton() {
  const button = el('button', {type: 'button', title: 'Light or dark', 'aria-label': 'Light or dark'}, '◐');
  button.onclick = () => {
    const chosen = document.documentElement.dataset.theme;
    const dark = chosen ? chosen === 'dark' : matchMedia('(prefers-color-scheme: dark)').matches;
    document.documentElement.dataset.theme = dark ? 'light' : 'dark';
  };
  return button;
}
function pageHeader(title, summary, ...buttons) {
  return el(
      'header', {}, el('div', {}, el('h1', {}, title), el('p', {class: 'summary'}, summary)),
      el('div', {class: 'actions'}, ...buttons, themeButton()));
}

const tip = el('div', {id: 'tip', hidden: ''});
function showTip(event, ...content) {
  tip.replaceChildren(...content);
  tip.hidden = false;
  const box = tip.getBoundingClientRect();
  const right = event.clientX + 16 + box.width <= innerWidth, below = event.clientY + 16 + box.height <= innerHeight;
  tip.style.left = Math.max(4, right ? event.clientX + 16 : event.clientX - box.width - 16) + 'px';
  tip.style.top = Math.max(4, below ? event.clientY + 16 : event.clientY - box.height - 12) + 'px';
}
const hideTip = () => {
  tip.hidden = true;
};

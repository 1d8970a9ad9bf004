// What tests/pages/browser.h puts at the head of a page: it notes errors and tells what a test asks of the page.
const probe = {
  errors: [],
  note(what) {
    this.errors.push(String(what));
  },

  // What a style sheet holds that a browser drops in silence, or that no script ever makes.
  lint() {
    const script = [...document.scripts].map(one => one.textContent).join('\n');
    const style = document.querySelector('style').textContent.replace(/\/\*[^]*?\*\//g, '');
    for (const [, selectors, declarations] of style.matchAll(/([^{}]+)\{([^{}]*)\}/g)) {
      for (const name of selectors.replace(/\[[^\]]*\]|\([^)]*\)|:+[\w-]+/g, '').matchAll(/[.#]?[a-z][\w-]*/gi)) {
        const word = name[0].replace(/^[.#]/, ''), known = word !== name[0];
        if (known && !new RegExp(`['"\` ]${word}['"\` ]`).test(script))
          this.note(`style: nothing is called ${name[0]}`);
        const kinds = [document.createElement(word), document.createElementNS('http://www.w3.org/2000/svg', word)];
        if (!known && kinds[0] instanceof HTMLUnknownElement && kinds[1].constructor === SVGElement) {
          this.note(`style: no element is called ${word}`);
        }
      }
      for (const one of declarations.split(/;(?![^(]*\))/).map(text => text.trim()).filter(Boolean)) {
        const [, property, value] = one.match(/^([\w-]+):\s*([^]+?)(?:\s*!important)?$/) || [one, one, ''];
        if (!property.startsWith('--') && !CSS.supports(property, value))
          this.note(`style: no such declaration: ${one}`);
      }
    }
    for (const [, name] of (style + script).matchAll(/var\((--[\w-]+)\)/g)) {
      if (!new RegExp(`${name}:`).test(style)) this.note(`style: ${name} has no value`);
    }
  },

  // Drawings that are empty, numbers that are none, texts of values that are not there.
  look() {
    for (const node of document.querySelectorAll('svg, svg *')) {
      for (const {name, value} of node.attributes) {
        if (/NaN|undefined|Infinity|\[object/.test(value)) this.note(`${node.nodeName} ${name}=${value}`);
      }
    }
    const text = document.querySelector('main').innerText;
    for (const word of ['undefined', 'NaN', '[object']) {
      if (text.includes(word)) this.note(`the page says ${word}`);
    }
    if (document.documentElement.scrollWidth > innerWidth) this.note('the page is wider than the window');
  },

  async run(ask) {
    let found = null;
    try {
      this.lint();
      this.look();
      found = await ask();
    } catch (error) {
      this.note(error);
    }
    const told = document.createElement('pre');
    told.textContent = `probe:${encodeURIComponent(JSON.stringify({errors: this.errors, found}))}:end`;
    document.body.append(told);
  }
};
window.alert = () => probe.note('a planted script ran');
addEventListener('error', event => probe.note(event.message));
addEventListener('unhandledrejection', event => probe.note(event.reason));
for (const kind of ['error', 'warn']) {
  console[kind] = (...words) => probe.note(words.join(' '));
}

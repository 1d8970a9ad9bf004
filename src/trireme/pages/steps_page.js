// An operator: its steps, each with tables of numbers or words.
const cell = (text, hue = -1) => el('td', hue < 0 ? {} : {style: `--hue: ${hue}`}, text);
const grid = ({label, rows, hues = []}) =>
    el('table', {}, el('caption', {}, label),
       el('tbody', {}, ...rows.map((row, i) => el('tr', {}, ...row.map((text, j) => cell(text, hues[i]?.[j]))))));
const steps = D.steps.map(
    (step, number) =>
        el('section', {class: 'panel'}, el('p', {}, `${number + 1}. ${step.text}`),
           el('div', {class: 'scroll grids'}, ...step.grids.map(grid))));
document.body.append(el('main', {}, pageHeader(document.title, D.summary), ...steps));

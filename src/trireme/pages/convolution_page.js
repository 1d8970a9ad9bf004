// A convolution: the steps of an algorithm, each with its grids of numbers.
const grid = ({label, rows}) =>
    el('table', {}, el('caption', {}, label),
       el('tbody', {}, ...rows.map(row => el('tr', {}, ...row.map(cell => el('td', {}, cell))))));
const steps = D.steps.map(
    (step, number) =>
        el('section', {class: 'panel'}, el('p', {}, `${number + 1}. ${step.text}`),
           el('div', {class: 'scroll grids'}, ...step.grids.map(grid))));
document.body.append(el('main', {}, pageHeader(document.title, D.summary), ...steps));

// A collective, round by round: data and places of the ranks. Data: what drawing_page.cpp writes.
const P = D.ranks, R = D.rounds.length;
const calm = matchMedia('(prefers-reduced-motion: reduce)').matches;
const OUT = D.buffers.findIndex(b => b.output);
const whole = D.buffers[OUT].chunks === 1 && D.word === 'chunk';  // the vector is never cut
let round = 0, playing = null, run = 0;
let byShare = hash.get('colour') ? hash.get('colour') === 'share' : P > 12;

// states[k]: what every rank holds after k rounds
const states = [D.start];
for (const r of D.rounds) {
  const next = structuredClone(states[states.length - 1]);
  for (const [rank, buffer, chunk, value] of r.changes) next[rank][buffer][chunk] = value;
  states.push(next);
}

// ---- small tools ----
const turn = share => {
  const angle = Math.round(212 + 360 * share) % 360;
  return `light-dark(hsl(${angle} 62% 58%), hsl(${angle} 55% 60%))`;
};
const hue = rank => turn(rank / P);
const pieces = D.word === 'block' ? P : D.buffers[OUT].chunks;
const pieceOf = v => D.values[v][0], ranksOf = v => D.values[v][1];
// Where all data comes from one root, colours tell pieces apart; else they tell where data came from.
const tint = v => D.rooted ? turn(pieceOf(v) / pieces) : hue(ranksOf(v)[0]);
const capital = text => /^[a-z]/.test(text) ? text[0].toUpperCase() + text.slice(1) : text;
function ranges(list) {
  const out = [];
  for (let i = 0; i < list.length;) {
    let j = i;
    while (j + 1 < list.length && list[j + 1] === list[j] + 1) ++j;
    out.push(j > i + 1 ? `${list[i]}–${list[j]}` : list.slice(i, j + 1).join(', '));
    i = j + 1;
  }
  return out.join(', ');
}
function setText(v) {  // contributions as one character per rank
  if (!v) return '·';
  if (!D.sums) return D.rooted ? whole ? '✓' : String(pieceOf(v)) : String(ranksOf(v)[0]);
  if (P > 10) return `${ranksOf(v).length}/${P}`;
  return Array.from({length: P}, (_, i) => ranksOf(v).includes(i) ? i : '·').join('');
}
function saying(v) {
  if (!v) return 'nothing';
  if (D.barrier) return `knows that ${ranges(ranksOf(v))} arrived`;
  if (whole) return D.sums ? `contributions of ${ranges(ranksOf(v))}` : `the vector of rank ${ranksOf(v)[0]}`;
  return D.sums ? `${D.word} ${pieceOf(v)}: contributions of ${ranges(ranksOf(v))}` :
                  `${D.word} ${pieceOf(v)} of rank ${ranksOf(v)[0]}`;
}

// ---- where the ranks stand ----
// Cells worth drawing, by rank and buffer: those that ever hold something, and all of an output that will.
const used = Array.from({length: P}, (_, rank) => D.buffers.map((b, i) => {
  const all = Array.from({length: b.chunks}, (_, c) => c);
  const ever = all.filter(c => states.some(state => state[rank][i][c]));
  return i === OUT && (ever.length || D.wanted[rank].some(w => w)) ? all : ever;
}));
const chunksShown = Math.max(...used.flat().map(list => list.length), 1);
const perRow = chunksShown <= 8 ? Math.max(chunksShown, 1) : Math.ceil(Math.sqrt(chunksShown * 2));
const size = chunksShown <= 4 ? 32 : chunksShown <= 8 ? 25 : chunksShown <= 16 ? 20 : 15;
const wide = chunksShown === 1 ? 96 : size;  // of a cell
const gap = size > 20 ? 4 : 2;
const labelled = D.buffers.length > 1;
const bodyH = mine => mine.reduce(
    (sum, list) => sum + (list.length && labelled ? 13 : 0) + Math.ceil(list.length / perRow) * (size + gap), 0);
const cardW = Math.max(perRow * (wide + gap) - gap + 20, P > 12 ? 70 : 100);
const cardH = 36 + Math.max(...used.map(bodyH));

function ringPlaces() {
  const places = (rx, ry) => Array.from({length: P}, (_, i) => {
    const a = 2 * Math.PI * i / P - Math.PI / 2;
    return [rx * Math.cos(a), ry * Math.sin(a)];
  });
  const room = P > 10 ? 26 : 44;
  const clash = list => list.some(
      (p, i) =>
          list.some((q, j) => j > i && Math.abs(p[0] - q[0]) < cardW + room && Math.abs(p[1] - q[1]) < cardH + room));
  let ry = Math.max(cardH * .8 + 40, cardW * .45), rx = Math.max(1.55 * ry, cardW * .8 + 40);
  if (P <= 2) return P === 1 ? [[0, 0]] : [[-cardW / 2 - 80, 0], [cardW / 2 + 80, 0]];
  while (clash(places(rx, ry))) {
    rx *= 1.05;
    ry *= 1.05;
  }
  return places(rx, ry);
}
function gridPlaces() {
  const shape = columns => Math.abs(Math.log(columns * (cardW + 80) / (Math.ceil(P / columns) * (cardH + 80)) / 1.6));
  let columns = 1;
  for (let c = 2; c <= P; c *= 2)
    if (shape(c) < shape(columns)) columns = c;
  return Array.from(
      {length: P}, (_, i) => [(i % columns) * (cardW + 80), Math.floor(i / columns) * (cardH + (P > 4 ? 108 : 80))]);
}
function treePlaces() {
  const children = Array.from({length: P}, () => []);
  let root = 0;
  D.parents.forEach((p, i) => p < 0 ? root = i : children[p].push(i));
  const places = [];
  let next = 0;
  (function place(rank, depth) {
    for (const child of children[rank]) place(child, depth + 1);
    const xs = children[rank].map(c => places[c][0]);
    const x = xs.length > 1 ? (xs[0] + xs[xs.length - 1]) / 2 :
        xs.length === 1     ? xs[0] + (cardW + 26) / 2 :
                              (next += cardW + 26);
    if (xs.length === 1) next = Math.max(next, x);
    places[rank] = [x, depth * (cardH + 62)];
  })(root, 0);
  return places;
}
const places = {
  ring: ringPlaces,
  grid: gridPlaces,
  tree: treePlaces
}[D.layout]();
const low = i => Math.min(...places.map(p => p[i])), high = i => Math.max(...places.map(p => p[i]));
const margin = D.layout === 'grid' && P > 4 ? 58 : 34;
const box = [low(0) - cardW / 2 - margin, low(1) - cardH / 2 - margin];
const extent = [high(0) - low(0) + cardW + 2 * margin, high(1) - low(1) + cardH + 2 * margin];

// A collective, round by round: cells, cards of ranks, and what flies between them.
// ---- cells ----
function drawCell(v, s, options = {}) {
  const g = svg('g'), w = options.wide || s;
  const radius = Math.min(6, s / 5);
  const clip = `clip${drawCell.next = (drawCell.next || 0) + 1}`;
  g.append(svg('clipPath', {id: clip}, svg('rect', {width: w, height: s, rx: radius})));
  const inside = svg('g', {'clip-path': `url(#${clip})`});
  inside.append(svg('rect', {class: 'cell', width: w, height: s}));
  if (v && !D.sums) {
    inside.append(svg('rect', {width: w, height: s, fill: tint(v)}));
  } else if (v && byShare) {
    const share = ranksOf(v).length / P;
    inside.append(svg('rect', {
      y: s * (1 - share),
      width: w,
      height: s * share,
      fill: share === 1 ? 'var(--done)' : 'var(--accent)',
      opacity: .35 + .6 * share
    }));
  } else if (v) {
    for (const rank of ranksOf(v))
      inside.append(svg('rect', {x: w * rank / P, width: w / P + .3, height: s, fill: hue(rank)}));
  }
  g.append(inside);
  if (s >= 14 && !D.barrier && !whole) {
    const text = svg(
        'text', {class: 'number' + (v ? '' : ' faint'), x: w / 2, y: s / 2 + .5, 'font-size': Math.max(9, s * .42)});
    text.textContent = v ? pieceOf(v) : options.faint ?? '';
    g.append(text);
  }
  g.append(
      svg('rect', {class: 'frame ' + (options.frame || ''), x: .5, y: .5, width: w - 1, height: s - 1, rx: radius}));
  const title = svg('title');
  title.textContent = saying(v);
  g.append(title);
  return g;
}

function drawCard(rank, state, fresh) {
  const [x, y] = places[rank];
  const done = D.wanted[rank].every((w, c) => !w || state[rank][OUT][c] === w) && D.wanted[rank].some(w => w);
  const g = svg('g', {transform: `translate(${x - cardW / 2} ${y - cardH / 2})`});
  g.append(svg('rect', {class: 'card' + (done ? ' done' : ''), width: cardW, height: cardH, rx: 11}));
  const name = svg('text', {class: 'name', x: 25, y: 20});
  name.textContent = (P > 12 ? '' : 'rank ') + rank;
  g.append(svg('circle', {cx: 15, cy: 15.5, r: 5, fill: hue(rank)}), name);
  if (done) g.append(svg('path', {class: 'tick', d: `M${cardW - 22} 15.5 l4 4 l7 -8`}));
  let top = 30;
  D.buffers.forEach((buffer, b) => {
    const list = used[rank][b];
    if (list.length && labelled) {
      const label = svg('text', {class: 'place', x: 10, y: top + 7});
      label.textContent = buffer.name;
      g.append(label);
      top += 13;
    }
    list.forEach((c, i) => {
      const v = state[rank][b][c];
      const finished = b === OUT && v && v === D.wanted[rank][c];
      const isNew = fresh && fresh.has(`${rank} ${b} ${c}`);
      const cell = drawCell(v, size, {
        wide,
        faint: b === OUT && D.wanted[rank][c] ? pieceOf(D.wanted[rank][c]) : '',
        frame: isNew ? 'new' :
            finished ? 'done' :
                       ''
      });
      cell.setAttribute(
          'transform', `translate(${10 + (i % perRow) * (wide + gap)} ${top + Math.floor(i / perRow) * (size + gap)})`);
      g.append(cell);
    });
    top += Math.ceil(list.length / perRow) * (size + gap);
  });
  return g;
}

// ---- arrows ----
const inCard = (rank, [x, y]) =>
    Math.abs(x - places[rank][0]) < cardW / 2 + 6 && Math.abs(y - places[rank][1]) < cardH / 2 + 6;
function drawArrow(from, to, kind, colour) {
  const a = places[from], b = places[to];
  const dx = b[0] - a[0], dy = b[1] - a[1], length = Math.hypot(dx, dy);
  // In a grid, round the cards that stand between.
  const between = D.layout === 'grid' &&
      (dx && dy ? 0 :
           dx   ? Math.abs(dx) > cardW + 81 && cardH + 60 :
                  Math.abs(dy) > cardH + 109 && cardW + 60);
  const bend =
      (between ? between / length : Math.max(D.layout === 'ring' ? .16 : .1, 56 / length)) * (kind === 'in' ? -1 : 1);
  const c = [(a[0] + b[0]) / 2 - dy * bend, (a[1] + b[1]) / 2 + dx * bend];
  // The part of the curve a-c-b that lies outside both cards.
  const mix = (s, t) => [0, 1].map(i => (1 - s) * (1 - t) * a[i] + ((1 - s) * t + s * (1 - t)) * c[i] + s * t * b[i]);
  let s = 0, t = 1;
  while (s < .49 && inCard(from, mix(s, s))) s += .005;
  while (t > .51 && inCard(to, mix(t, t))) t -= .005;
  const start = mix(s, s), control = mix(s, t), end = mix(t, t);
  const path = svg('path', {class: 'arrow ' + kind, d: `M${start} Q${control} ${end}`});
  const angle = Math.atan2(end[1] - control[1], end[0] - control[0]) * 180 / Math.PI;
  const tip = svg('path', {class: 'tip', d: 'M3 0 L-8 5 L-8 -5 Z', transform: `translate(${end}) rotate(${angle})`});
  if (colour) {
    path.style.stroke = colour;
    tip.style.fill = colour;
  }
  return [path, tip];
}
// One flight per pair of ranks: a path, what travels on it, and in which part of the animation.
function flightsOf(k) {
  const flights = new Map();
  const add = (from, to, kind, values, first, last, colour) => {
    if (from === to) return;
    const key = `${from} ${to} ${kind} ${first}`;
    if (!flights.has(key)) flights.set(key, {from, to, kind, values: [], first, last, colour});
    flights.get(key).values.push(...values.filter(v => v));
  };
  const all = Array.from({length: P}, (_, i) => i);
  for (const m of D.rounds[k - 1].moves) {
    if (m.kind !== 'fold') {
      add(m.from, m.to, m.kind, m.values, 0, 1, '');
      continue;
    }
    const inside = m.to === m.actor;  // nothing goes out again
    for (const rank of all) {
      const own = m.values.map(
          v => D.values.findIndex(([piece, ranks]) => piece === pieceOf(v) && ranks.length === 1 && ranks[0] === rank));
      add(rank, m.actor, 'in', own.map(v => Math.max(v, 0)), 0, inside ? 1 : .5, hue(m.actor));
    }
    for (const rank of m.to < 0 ? all : [m.to]) add(m.actor, rank, 'out', m.values, .5, 1, hue(m.actor));
  }
  return [...flights.values()];
}
function drawFlights(k) {
  const layer = svg('g'), tokens = [];
  const flights = k > 0 ? flightsOf(k) : [];
  const crowded = flights.length > 40;
  for (const flight of flights) {
    const [path, tip] = drawArrow(flight.from, flight.to, flight.kind, flight.colour);
    if (crowded) path.style.strokeWidth = 1;
    layer.append(path, tip);
    const s = Math.min(size, crowded ? 13 : 22), shown = flight.values.slice(0, crowded ? 1 : 4);
    const token = svg('g');
    if (D.barrier) shown.length = Math.min(shown.length, 1);
    shown.forEach((v, i) => {
      const cell = drawCell(v, s, {frame: 'token', wide: chunksShown === 1 && !crowded ? 34 : s});
      const left = shown.length > 1 ? (i - shown.length / 2) * s * .62 : chunksShown === 1 && !crowded ? -17 : -s / 2;
      cell.setAttribute('transform', `translate(${left} ${- s / 2})`);
      token.append(cell);
    });
    if (flight.values.length > shown.length && !crowded) {
      const more = svg('text', {class: 'place', x: shown.length * s * .31 + s * .5, y: 4});
      more.textContent = `+${flight.values.length - shown.length}`;
      token.append(more);
    }
    tokens.push({path, token, flight});
  }
  const top = svg('g');
  for (const t of tokens) top.append(t.token);
  layer.append(top);
  return {layer, tokens};
}
function setTokens(tokens, t) {  // t in [0, 1] while flying; null at rest
  for (const {path, token, flight} of tokens) {
    const length = path.getTotalLength();
    const at = t === null ? .5 : (t - flight.first) / (flight.last - flight.first);
    const hidden = t === null ? flight.kind === 'in' && flight.last < 1 : at < 0 || at > 1;
    const eased = at < .5 ? 2 * at * at : 1 - 2 * (1 - at) * (1 - at);
    const point = path.getPointAtLength(length * Math.min(Math.max(t === null ? at : eased, 0), 1));
    token.setAttribute('transform', `translate(${point.x} ${point.y})`);
    token.style.display = hidden ? 'none' : '';
  }
}

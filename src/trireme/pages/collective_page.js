// A collective, round by round: the page, its table, and stepping through the rounds.
// ---- the page ----
const stage = svg('svg', {viewBox: `${box} ${extent}`, role: 'img'});
const nowLine = el('p', {class: 'now'}), say = el('p', {class: 'say', 'aria-live': 'polite'}),
      list = el('ul', {class: 'moves'});
const buttons = {};
const controls = el('div', {class: 'controls'});
const icons = {
  first: 'M4 3v10M13 3L6 8l7 5z',
  prev: 'M11 3L4 8l7 5z',
  next: 'M5 3l7 5-7 5z',
  last: 'M12 3v10M3 3l7 5-7 5z'
};
function button(key, text, label, action) {
  const icon = text ||
      svg('svg', {viewBox: '0 0 16 16', width: 16, height: 16, 'aria-hidden': 'true', class: 'icon'},
          svg('path', {d: icons[key]}));
  buttons[key] = el('button', {type: 'button', 'aria-label': label, title: label}, icon);
  buttons[key].onclick = action;
  controls.append(buttons[key]);
}
button('first', '', 'First (Home)', () => go(0));
button('prev', '', 'Previous round (←)', () => go(round - 1));
button('play', 'Play', 'Play or pause (space)', toggle);
buttons.play.className = 'main';
button('next', '', 'Next round (→)', () => go(round + 1, true));
button('last', '', 'Last (End)', () => go(R));
const slider = el('input', {type: 'range', min: 0, max: R, value: 0, 'aria-label': 'Round'});
slider.oninput = () => go(+slider.value);
controls.append(slider);
const legend = el('div', {class: 'legend'});
const table = el('table'), lanes = el('div');
const facts = el('dl');
for (const [label, text] of D.facts) facts.append(el('dt', {}, label), el('dd', {}, text));
const colours = el('button', {type: 'button'});
colours.onclick = () => {
  byShare = !byShare;
  drawLegend();
  show();
};
document.body.append(
    el('main', {}, pageHeader(capital(D.title), capital(D.summary) + '.', ...(D.sums ? [colours] : [])),
       el('div', {class: 'columns'},
          el('section', {class: 'panel stage', 'aria-label': 'Drawing'}, stage, legend, controls),
          el('div', {class: 'side'}, el('section', {class: 'panel'}, nowLine, say, list),
             el('section', {class: 'panel'}, el('h2', {}, 'In all'), facts))),
       el('section', {class: 'panel wide scroll'}, el('h2', {}, 'All rounds at a glance'), lanes),
       el('section', {class: 'panel wide scroll'}, el('h2', {}, 'Who holds what'), table)));

function drawLegend() {
  colours.textContent = byShare ? 'Colour by rank' : 'Colour by share';
  legend.replaceChildren();
  const chip = (colour, text) => legend.append(el('span', {}, el('i', {style: `background:${colour}`}), text));
  if (D.sums && byShare) {
    chip('color-mix(in srgb, var(--accent) 45%, var(--empty))', 'few contributions');
    chip('color-mix(in srgb, var(--accent) 85%, var(--empty))', 'most');
    chip('var(--done)', 'all');
  } else {
    const shown = D.rooted ? pieces : P,
          word = D.rooted ? D.word + ' ' :
        D.barrier         ? 'rank ' :
        D.sums            ? 'contribution of ' :
                            'from ';
    if (whole && D.rooted)
      chip(turn(0), 'the vector');
    else if (shown > 12)
      legend.append(`each ${D.rooted ? D.word : 'rank'} has a colour of its own`);
    else
      for (let i = 0; i < shown; ++i) chip(turn(i / shown), word + i);
  }
  legend.append(
      el('span', {}, el('i', {style: 'box-shadow:inset 0 0 0 2px var(--glow)'}), 'changed in this round'),
      el('span', {}, el('i', {style: 'box-shadow:inset 0 0 0 2px var(--done)'}), 'finished'));
}

function describe(m) {
  const filled = m.values.filter(v => v), ascending = list => [...new Set(list)].sort((a, b) => a - b);
  const held = ascending(filled.map(pieceOf)), from = ascending(filled.map(v => ranksOf(v)[0]));
  const what = D.barrier ? 'here' : whole ? 'vector' : `${D.word}${held.length > 1 ? 's' : ''} ${ranges(held)}`;
  const plain = D.sums || D.rooted || D.barrier || (from.length === 1 && from[0] === m.from) ||
      filled.every(v => pieceOf(v) === ranksOf(v)[0]);
  const origin = plain ? '' : ` of ${ranges(from)}`;
  const whose = D.sums && !D.barrier && m.values.length === 1 && P <= 10 ? ` (${setText(m.values[0])})` : '';
  if (m.kind === 'read') return [el('b', {}, `${m.to} ⇠ ${m.from}`), ` reads ${what}${origin}`];
  if (m.kind === 'fold') {
    const whom = m.to < 0 ? 'everybody' : m.to === m.actor ? 'itself' : `rank ${m.to}`;
    return [el('b', {}, `${m.actor}`), ` folds ${what} for ${whom}`];
  }
  const added = m.kind === 'add' && !D.barrier ? ', added' : '';
  return [el('b', {}, `${m.from} → ${m.to}`), ` ${what}${origin}${whose}${added}`];
}

function drawTable(state, fresh) {
  const meaning = D.barrier ? 'The ranks whose arrival is known.' :
      D.sums                ? 'Each cell: the ranks whose contribution it holds.' :
      D.rooted              ? `Each cell: the ${whole ? 'vector' : D.word} it holds.` :
                              'Each cell: the rank its data came from.';
  table.replaceChildren(el('caption', {}, meaning));
  const head = el('tr', {}, el('th', {scope: 'col'}, 'rank'));
  D.buffers.forEach((b, i) => {
    if (i) head.append(el('td', {class: 'gap'}));
    for (let c = 0; c < b.chunks; ++c) {
      const name = D.barrier ? 'knows of' : whole && b.chunks === 1 ? b.name : `${labelled ? b.name : D.word} ${c}`;
      head.append(el('th', {scope: 'col'}, name));
    }
  });
  const rowsOf = Array.from({length: P}, (_, rank) => {
    const row = el('tr', {}, el('th', {scope: 'row'}, rank));
    D.buffers.forEach((b, i) => {
      if (i) row.append(el('td', {class: 'gap'}));
      for (let c = 0; c < b.chunks; ++c) {
        const v = state[rank][i][c];
        const classes =
            [i === OUT && v && v === D.wanted[rank][c] ? 'done' : '', fresh.has(`${rank} ${i} ${c}`) ? 'new' : ''];
        const where = v && i !== OUT && !D.barrier && !whole && !D.rooted ? `${pieceOf(v)}: ` : '';
        row.append(el('td', {class: classes.join(' ').trim(), title: saying(v)}, where + setText(v)));
      }
    });
    return row;
  });
  table.append(el('thead', {}, head), el('tbody', {}, ...rowsOf));
}

function drawLanes() {
  const dx = Math.max(22, Math.min(170, 1020 / R)), dy = Math.max(12, Math.min(26, 300 / P));
  const width = 50 + R * dx + 30, height = P * dy + 26;
  const picture = svg('svg', {
    class: 'lanes',
    width,
    height,
    viewBox: `0 0 ${width} ${height}`,
    role: 'img',
    'aria-label': 'Messages of all rounds: time runs to the right, one line for each rank'
  });
  const y = rank => 22 + rank * dy;
  for (let rank = 0; rank < P; ++rank) {
    const text = svg('text', {x: 4, y: y(rank) + 4});
    text.textContent = P > 20 && rank % 4 ? '' : rank;
    picture.append(svg('line', {class: 'lane', x1: 34, x2: width - 16, y1: y(rank), y2: y(rank)}), text);
  }
  for (let k = 1; k <= R; ++k) {
    const x = 40 + (k - 1) * dx;
    const band = svg('rect', {class: 'band', 'data-round': k, x, y: 12, width: dx, height: height - 16, rx: 6});
    const title = svg('title');
    title.textContent = `round ${k}: ${D.rounds[k - 1].say}`;
    band.append(title);
    band.onclick = () => go(k);
    const text = svg('text', {x: x + dx / 2, y: 9, 'text-anchor': 'middle'});
    text.textContent = dx > 20 || k % 2 ? k : '';
    picture.append(band, text);
    for (const f of flightsOf(k)) {
      const a = x + dx * (.08 + .84 * f.first), b = x + dx * (.08 + .84 * f.last);
      picture.append(
          svg('path',
              {class: 'hop', 'data-round': k, 'pointer-events': 'none', d: `M${a} ${y(f.from)} L${b} ${y(f.to)}`}),
          svg('circle', {cx: b, cy: y(f.to), r: 2, fill: 'var(--soft)', 'pointer-events': 'none'}));
    }
  }
  lanes.append(picture);
}

// ---- stepping ----
function show(t = null) {
  const flying = t !== null && round > 0;
  const state = states[flying ? round - 1 : round];
  const fresh =
      new Set(flying || !round ? [] : D.rounds[round - 1].changes.filter(c => c[3]).map(c => c.slice(0, 3).join(' ')));
  const {layer, tokens} = drawFlights(round);
  const cards = svg('g');
  for (let rank = 0; rank < P; ++rank) cards.append(drawCard(rank, state, fresh));
  stage.replaceChildren(cards, layer);
  setTokens(tokens, flying ? 0 : null);
  if (flying) return tokens;
  drawTable(state, fresh);
  return tokens;
}
function words() {
  nowLine.textContent = round ? `Round ${round} of ${R}` : 'Start';
  const text = round ? D.rounds[round - 1].say :
      D.barrier      ? 'Every rank has arrived and knows only of itself.' :
                       'Before the first round: what every rank brings.';
  say.textContent = text;
  list.replaceChildren(...(round ? D.rounds[round - 1].moves.map(m => el('li', {}, ...describe(m))) : []));
  list.style.display = list.children.length ? '' : 'none';
  stage.setAttribute('aria-label', `${nowLine.textContent}. ${text}`);
  slider.value = round;
  slider.setAttribute('aria-valuetext', nowLine.textContent);
  buttons.first.disabled = buttons.prev.disabled = round === 0;
  buttons.last.disabled = buttons.next.disabled = round === R;
  document.querySelectorAll('[data-round]').forEach(n => n.classList.toggle('on', +n.dataset.round === round));
}
function go(k, fly = false) {
  k = Math.min(Math.max(k, 0), R);
  const mine = ++run;
  round = k;
  words();
  history.replaceState(null, '', `#round=${k}`);
  if (!fly || calm || !k) {
    show();
    return Promise.resolve(true);
  }
  const tokens = show(0), began = performance.now(), duration = 1100;
  return new Promise(resolve => (function frame(time) {
                       if (mine !== run) return resolve(false);
                       const t = Math.max(0, Math.min(1, (time - began) / duration));
                       setTokens(tokens, t);
                       if (t < 1) return requestAnimationFrame(frame);
                       show();
                       resolve(true);
                     })(began));
}
function toggle() {
  playing ? stop() : play();
}
function stop() {
  playing = null;
  buttons.play.textContent = 'Play';
}
async function play() {
  const mine = playing = {};
  buttons.play.textContent = 'Pause';
  if (round === R) await go(0);
  while (playing === mine && round < R) {
    if (!await go(round + 1, true)) break;
    await new Promise(resolve => setTimeout(resolve, calm ? 1600 : 700));
  }
  if (playing === mine) stop();
}
document.addEventListener('keydown', event => {
  if (event.target === slider && event.key.startsWith('Arrow')) return;
  const keys = {
    ArrowRight: () => {
      stop();
      go(round + 1, true);
    },
    ArrowLeft: () => {
      stop();
      go(round - 1);
    },
    Home: () => go(0),
    End: () => go(R),
    ' ': toggle
  };
  if (event.target.tagName === 'BUTTON' && event.key === ' ') return;
  if (keys[event.key]) {
    event.preventDefault();
    keys[event.key]();
  }
});
addEventListener('hashchange', () => go(+new URLSearchParams(location.hash.slice(1)).get('round') || 0));
drawLegend();
drawLanes();
go(+hash.get('round') || 0);

'use strict';
// The page of `convoy runs serve`: polls /api/, keeps what it showed, and draws curves as SVG.
const COLORS = ['#1f77d0', '#e0762f', '#2a9d5c', '#c8449c', '#8a63d2', '#b08900', '#d64545', '#1a9aa0'];
const POLL_MS = 2000;
const WIDTH = 520, HEIGHT = 250, LEFT = 58, RIGHT = 22, TOP = 10, BOTTOM = 26;
const byId = id => document.getElementById(id);
const state = {runs: [], text: '', shown: [], curves: {}, seen: {}, at: 0, touched: false, picked: {}};

function element(tag, attributes, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {})) made.setAttribute(name, value);
  made.append(...children);
  return made;
}

async function ask(path, parameters) {
  const query = new URLSearchParams(parameters || []).toString();
  const response = await fetch(path + (query ? '?' + query : ''));
  if (!response.ok) throw new Error((await response.text()).trim());
  return response;
}
const asJson = async (path, parameters) => (await ask(path, parameters)).json();

function figure(value, digits = 4) {
  if (value === null || value === undefined) return '–';
  const size = Math.abs(value);
  if (size !== 0 && (size < 1e-3 || size >= 1e6)) return value.toExponential(2);
  return String(+value.toFixed(size >= 1000 ? 0 : digits));
}

function age(seconds) {
  const passed = Math.max(0, Date.now() / 1000 - seconds);
  if (!seconds) return '';
  if (passed < 90) return Math.round(passed) + ' s ago';
  if (passed < 5400) return Math.round(passed / 60) + ' min ago';
  return passed < 129600 ? Math.round(passed / 3600) + ' h ago' : Math.round(passed / 86400) + ' days ago';
}

const colorOf = name => COLORS[Math.max(0, state.shown.indexOf(name)) % COLORS.length];
const visibleRuns = () => {
  const words = byId('filter').value.toLowerCase().split(/\s+/).filter(Boolean);
  return state.runs.filter(run => words.every(word => (run.name + ' ' + run.state).toLowerCase().includes(word)));
};

function drawList() {
  const list = byId('runs');
  const runs = visibleRuns();
  const focused = document.activeElement && document.activeElement.dataset ? document.activeElement.dataset.run : null;
  list.replaceChildren(...runs.map((run, index) => {
    const shown = state.shown.includes(run.name);
    const dot = element('span', {class: 'dot'});
    if (shown) dot.style.background = colorOf(run.name);
    const steps = run.total_steps ? `${run.steps}/${run.total_steps}` : String(run.steps);
    const item = element('li', {tabindex: '0', role: 'option', 'aria-selected': String(shown), 'data-run': run.name}, dot,
      element('span', {class: 'name'}, run.name), element('span', {class: 'state ' + run.state}, run.state),
      element('span', {class: 'figures'}, `step ${steps}  loss ${figure(run.loss)}  eval ${figure(run.eval_loss)}  ${age(run.updated)}`));
    item.addEventListener('click', event => { state.at = index; choose(run.name, !(event.ctrlKey || event.metaKey || event.target === dot)); });
    return item;
  }));
  byId('count').textContent = runs.length === state.runs.length ? `${runs.length} runs` : `${runs.length} of ${state.runs.length} runs`;
  if (focused) { const item = list.querySelector(`[data-run="${CSS.escape(focused)}"]`); if (item) item.focus({preventScroll: true}); }
}

function choose(name, alone) {
  state.touched = true;
  if (alone) state.shown = [name];
  else if (state.shown.includes(name)) state.shown = state.shown.filter(other => other !== name);
  else state.shown = [...state.shown, name];
  location.hash = state.shown.map(encodeURIComponent).join('&');
  drawList();
  update(true).catch(fail);
}

// --- curves ---

// Debiased moving average, as TensorBoard smooths.
function smoothed(points, weight) {
  if (weight <= 0) return points;
  let mean = 0, count = 0;
  return points.map(([step, value, low, high]) => {
    if (value === null) return [step, null, low, high];
    mean = weight * mean + (1 - weight) * value;
    count += 1;
    return [step, mean / (1 - Math.pow(weight, count)), low, high];
  });
}

function ticks(low, high, wanted) {
  const span = high - low || Math.abs(high) || 1;
  const power = Math.pow(10, Math.floor(Math.log10(span / wanted)));
  const step = [1, 2, 5, 10].map(times => times * power).find(size => span / size <= wanted);
  const found = [];
  for (let index = Math.ceil(low / step); found.length <= wanted && index * step <= high + step * 1e-9; index++) found.push(index * step);
  return found;
}

function tickText(value) {
  const size = Math.abs(value);
  if (size !== 0 && size < 1e-4) return value.toExponential(1);
  for (const [unit, letter] of [[1e12, 'T'], [1e9, 'G'], [1e6, 'M'], [1e3, 'k']])
    if (size >= (letter === 'k' ? 1e4 : unit)) return +(value / unit).toPrecision(5) + letter;
  return String(+value.toPrecision(5));
}

function svg(tag, attributes, text) {
  const made = document.createElementNS('http://www.w3.org/2000/svg', tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  if (text !== undefined) made.textContent = text;
  return made;
}

function pathOf(points, x, y) {
  let path = '', pen = 'M';
  for (const [step, value] of points) {
    if (value === null || !isFinite(y(value))) { pen = 'M'; continue; }
    path += pen + x(step).toFixed(1) + ' ' + y(value).toFixed(1);
    pen = 'L';
  }
  return path;
}

// `series`: {label, color, points, smooth, dashed}.
function chart(title, series, unit = 'step') {
  const log = byId('log').checked;
  const weight = Number(byId('smoothing').value);
  const drawn = series.map(one => ({...one, line: one.smooth ? smoothed(one.points, weight) : one.points}));
  let first = Infinity, last = -Infinity, low = Infinity, high = -Infinity;
  for (const one of drawn)
    for (const [step, value] of [...one.points, ...one.line]) {
      if (value === null || (log && value <= 0)) continue;
      first = Math.min(first, step); last = Math.max(last, step);
      low = Math.min(low, value); high = Math.max(high, value);
    }
  const caption = element('figcaption', {}, title, element('span', {class: 'at'}));
  const box = element('figure', {'data-chart': title}, caption);
  if (first > last) { box.append(element('p', {class: 'legend'}, log ? 'no value above 0' : 'no finite value')); return box; }
  // Smoothing leaves the last digits of a constant uneven.
  if (high - low <= 1e-9 * Math.max(Math.abs(low), Math.abs(high))) { const pad = Math.abs(low) * 0.05 || 1; low -= log ? 0 : pad; high += pad; }
  const bend = log ? Math.log10 : value => value;
  const x = step => LEFT + (WIDTH - LEFT - RIGHT) * (last === first ? 0.5 : (step - first) / (last - first));
  const y = value => TOP + (HEIGHT - TOP - BOTTOM) * (bend(high) - bend(value)) / ((bend(high) - bend(low)) || 1);
  const paper = svg('svg', {viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: 'img', 'aria-label': title});
  const marks = log ? ticks(Math.log10(low), Math.log10(high), 5).map(at => Math.pow(10, at)) : ticks(low, high, 5);
  for (const mark of marks) {
    paper.append(svg('line', {class: 'grid', x1: LEFT, x2: WIDTH - RIGHT, y1: y(mark), y2: y(mark)}),
      svg('text', {x: LEFT - 6, y: y(mark) + 4, 'text-anchor': 'end'}, tickText(mark)));
  }
  for (const mark of ticks(first, last, 5))
    paper.append(svg('text', {x: x(mark), y: HEIGHT - 8, 'text-anchor': 'middle'}, tickText(mark)));
  for (const one of drawn) {
    if (one.smooth && weight > 0) paper.append(svg('path', {class: 'raw', stroke: one.color, d: pathOf(one.points, x, y)}));
    const curve = svg('path', {class: 'curve', stroke: one.color, d: pathOf(one.line, x, y)});
    if (one.dashed) curve.setAttribute('stroke-dasharray', '5 3');
    paper.append(curve);
    if (one.line.length === 1 && one.line[0][1] !== null) paper.append(svg('circle', {cx: x(one.line[0][0]), cy: y(one.line[0][1]), r: 3, fill: one.color}));
  }
  const cursor = svg('line', {class: 'cursor', y1: TOP, y2: HEIGHT - BOTTOM, visibility: 'hidden'});
  paper.append(cursor);
  paper.addEventListener('pointermove', event => {
    const bounds = paper.getBoundingClientRect();
    const at = first + (last - first) * Math.min(1, Math.max(0, ((event.clientX - bounds.left) / bounds.width * WIDTH - LEFT) / (WIDTH - LEFT - RIGHT)));
    const values = drawn.map(one => {
      let best = null;
      for (const point of one.points) if (point[1] !== null && (!best || Math.abs(point[0] - at) < Math.abs(best[0] - at))) best = point;
      return best ? `${one.label} ${figure(best[1])}` : '';
    });
    cursor.setAttribute('x1', x(at)); cursor.setAttribute('x2', x(at)); cursor.setAttribute('visibility', 'visible');
    caption.lastChild.textContent = `${unit} ${Math.round(at)}: ${values.slice(0, 8).join(', ')}`;
  });
  paper.addEventListener('pointerleave', () => { cursor.setAttribute('visibility', 'hidden'); caption.lastChild.textContent = ''; });
  const legend = element('div', {class: 'legend'}, ...drawn.slice(0, 16).map(one => {
    const line = element('i'); line.style.background = one.color;
    return element('span', {}, line, one.label);
  }));
  box.append(paper, legend);
  return box;
}

// Tags that belong together share a chart; bytes are shown in GiB.
function chartOf(tag) {
  if (tag === 'train/loss' || tag === 'eval/loss') return 'loss';
  const words = tag.replace(/_bytes$/, ', GiB').replaceAll('_', ' ');
  const rank = words.match(/^rank\/\d+\/(.*)$/);
  return rank ? 'ranks: ' + rank[1] : words;
}
const ORDER = ['loss', 'train/tokens per second', 'train/samples per second', 'train/learning rate', 'train/grad norm'];

function drawCharts() {
  const charts = new Map();
  for (const name of state.shown)
    for (const [tag, points] of Object.entries(state.curves[name] || {})) {
      const title = chartOf(tag);
      if (!charts.has(title)) charts.set(title, []);
      const series = charts.get(title);
      const scale = tag.endsWith('_bytes') ? 2 ** -30 : 1;
      const rank = (tag.match(/^rank\/(\d+)\//) || [])[1];
      const alone = state.shown.length === 1;
      const label = [alone && (rank !== undefined || title === 'loss') ? '' : name, rank !== undefined ? 'rank ' + rank : '',
        title === 'loss' ? tag.split('/')[0] : ''].filter(Boolean).join(' ');
      const color = alone ? COLORS[series.length % COLORS.length] : colorOf(name);
      series.push({label, color, points: scale === 1 ? points : points.map(([step, ...values]) => [step, ...values.map(value => value === null ? null : value * scale)]), smooth: !tag.startsWith('eval/') && tag !== 'train/learning_rate', dashed: tag.startsWith('eval/') || (rank > 0 && !alone)});
    }
  const place = title => { const at = ORDER.indexOf(title); return at < 0 ? ORDER.length + (title.startsWith('ranks') ? 1 : 0) : at; };
  const titles = [...charts.keys()].sort((left, right) => place(left) - place(right) || left.localeCompare(right));
  byId('charts').replaceChildren(...titles.map(title => chart(title, charts.get(title))));
}

const DEVICE_CHARTS = {gpu_util_pct: 'devices: busy, %', sm_active_pct: 'devices: multiprocessors active, %', mem_used_mib: 'devices: memory, MiB',
  power_w: 'devices: power, W', temp_c: 'devices: temperature, C', host_cpu_pct: 'host: CPUs busy, %', host_mem_used_mib: 'host: memory, MiB'};

async function drawDevices() {
  const place = byId('devices');
  if (state.shown.length !== 1) { place.replaceChildren(); return; }
  const curves = await asJson('/api/devices', [['run', state.shown[0]]]);
  place.replaceChildren(...Object.entries(DEVICE_CHARTS).map(([column, title]) => {
    const tags = Object.keys(curves).filter(tag => tag.endsWith('/' + column));
    const series = tags.map((tag, index) => ({label: tag.slice(0, -column.length - 1), color: COLORS[index % COLORS.length], points: curves[tag], smooth: false}));
    return series.length ? chart(title, series, 'second') : '';
  }));
}

// --- what stands beside the curves ---

function table(heading, columns, rows) {
  if (!rows.length) return [];
  const head = element('tr', {}, ...columns.map(column => element('th', {scope: 'col'}, column)));
  return [element('h2', {}, heading), element('div', {class: 'scroll'}, element('table', {}, element('thead', {}, head),
    element('tbody', {}, ...rows.map(row => element('tr', {}, ...row.map(cell => element('td', {}, cell)))))))];
}

function flat(value, path, into) {
  if (value !== null && typeof value === 'object' && !Array.isArray(value))
    for (const [key, inner] of Object.entries(value)) flat(inner, path ? path + '.' + key : key, into);
  else into.push([path, typeof value === 'string' ? value : JSON.stringify(value)]);
  return into;
}

async function drawFacts() {
  const one = state.shown.length === 1 ? await asJson('/api/run', [['run', state.shown[0]]]) : null;
  const several = state.shown.length > 1 ? await asJson('/api/comparison', state.shown.map(name => ['run', name])) : null;
  const facts = [], tables = [];
  if (one) {
    const {summary} = one;
    facts.push(element('h2', {}, summary.name + ' '), element('p', {}, element('span', {class: 'state ' + summary.state}, summary.state),
      ` at step ${summary.steps}${summary.total_steps ? ' of ' + summary.total_steps : ''}, in ${one.folder}`));
    if (summary.failure) facts.push(element('p', {class: 'failure'}, summary.failure));
    const identity = one.identity || {};
    tables.push(...table('Figures', ['figure', 'value'], flat(one.metrics || {}, '', []).filter(([, value]) => value !== 'null')),
      ...table('Stamp', ['what a resumed run shares', 'value'], flat(identity.stamp || {}, '', [])),
      ...table('Settings', ['setting', 'value', 'from'], flat(identity.config || {}, '', []).map(([key, value]) => [key, value, (identity.origins || {})[key] || 'default'])));
  }
  if (several)
    tables.push(...(several.settings.length
      ? table('Settings that differ', ['setting', ...several.runs], several.settings.map(line => [line.name, ...line.values.map(value => value || '–')]))
      : [element('p', {}, several.without_settings.length ? 'Settings are not compared: ' + several.without_settings.join(', ') + ' recorded none.' : 'The settings are the same.')]));
  byId('facts').replaceChildren(...facts);
  byId('tables').replaceChildren(...tables);
  await drawSamples(one);
  await drawLog(one);
}

// A choice stays while the page renews what is around it.
const pickedOf = (label, values) => values.find(value => String(value) === state.picked[label]) ?? values[0];
function picker(label, values, name, show) {
  const choice = element('select', {'aria-label': label}, ...values.map(value => element('option', {value}, name + ' ' + value)));
  choice.value = String(pickedOf(label, values));
  choice.addEventListener('change', () => { state.picked[label] = choice.value; show(choice.value).catch(fail); });
  return choice;
}

async function drawSamples(run) {
  const place = byId('samples');
  if (!run || !run.samples.length) { place.replaceChildren(); return; }
  const steps = run.samples.slice().reverse();
  const body = element('div');
  const show = async step => {
    const rows = await asJson('/api/samples', [['run', run.summary.name], ['step', step]]);
    const keys = [...new Set(rows.flatMap(row => Object.keys(row)))].slice(0, 8);
    body.replaceChildren(...table(`Answers at step ${step}`, keys, rows.map(row => keys.map(key =>
      typeof row[key] === 'string' ? row[key] : row[key] === undefined ? '–' : JSON.stringify(row[key])))));
  };
  place.replaceChildren(element('h2', {}, 'Samples'), picker('step of the samples', steps, 'step', show), body);
  await show(pickedOf('step of the samples', steps));
}

async function drawLog(run) {
  const place = byId('log-view');
  if (!run || !run.logs.length) { place.replaceChildren(); return; }
  const body = element('pre', {tabindex: '0'});
  const show = async rank => {
    body.textContent = await (await ask('/api/log', [['run', run.summary.name], ['rank', rank]])).text() || '(empty)';
    body.scrollTop = body.scrollHeight;
  };
  place.replaceChildren(element('h2', {}, 'Log'), picker('rank of the log', run.logs, 'rank', show), body);
  await show(pickedOf('rank of the log', run.logs));
}

// --- keeping current ---

function fail(error) { console.error(error); byId('notice').textContent = error.message + (error instanceof TypeError ? ': does `convoy runs serve` still run?' : ''); }

async function update(whole) {
  const answer = await ask('/api/runs');
  const text = await answer.text();
  byId('notice').textContent = '';
  if (text !== state.text) {
    const {folder, runs} = JSON.parse(text);
    state.text = text;
    state.runs = runs;
    byId('folder').textContent = folder;
    if (!runs.length) byId('notice').textContent = `No runs under ${folder} yet: they appear when a training starts.`;
    if (!state.touched && !state.shown.length && runs.length) { state.shown = [(runs.find(run => run.steps > 0) || runs[0]).name]; whole = true; }
    state.shown = state.shown.filter(name => runs.some(run => run.name === name));
    drawList();
  }
  const changed = state.shown.filter(name => {
    const run = state.runs.find(other => other.name === name);
    return state.seen[name] !== run.updated;
  });
  if (changed.length) {
    Object.assign(state.curves, await asJson('/api/curves', changed.map(name => ['run', name])));
    for (const name of changed) state.seen[name] = state.runs.find(run => run.name === name).updated;
  }
  if (changed.length || whole) { drawCharts(); await drawDevices(); await drawFacts(); }
  document.body.dataset.ready = 'true';
}

async function poll() {
  if (!document.hidden) await update(false).catch(fail);
  setTimeout(poll, POLL_MS);
}

byId('filter').addEventListener('input', drawList);
byId('log').addEventListener('change', () => { drawCharts(); drawDevices().catch(fail); });
byId('smoothing').addEventListener('input', () => { byId('smoothing-value').textContent = Number(byId('smoothing').value).toFixed(2); drawCharts(); });
const toggleHelp = () => { const help = byId('help'); help.hidden = !help.hidden; byId('help-button').setAttribute('aria-expanded', String(!help.hidden)); };
byId('help-button').addEventListener('click', toggleHelp);
document.addEventListener('keydown', event => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const field = event.target.matches('input[type=search], select, textarea');
  if (event.key === 'Escape' && field) event.target.blur();
  if (field) return;
  const items = [...byId('runs').children];
  const move = by => { state.at = Math.min(items.length - 1, Math.max(0, state.at + by)); if (items[state.at]) items[state.at].focus(); };
  const run = items[state.at] && items[state.at].dataset.run;
  const keys = {
    j: () => move(1), k: () => move(-1), ArrowDown: () => move(1), ArrowUp: () => move(-1),
    ' ': () => run && choose(run, false), Enter: () => run && choose(run, true), '/': () => byId('filter').focus(),
    l: () => byId('log').click(), '?': toggleHelp,
    s: () => { const slide = byId('smoothing'); slide.value = Number(slide.value) > 0 ? 0 : 0.6; slide.dispatchEvent(new Event('input')); },
  };
  const arrows = event.key.startsWith('Arrow') && !event.target.matches('li');
  const pressed = event.target.matches('button') && (event.key === ' ' || event.key === 'Enter');
  if (keys[event.key] && !arrows && !pressed) { event.preventDefault(); keys[event.key](); }
});
if (location.hash.length > 1) { state.shown = location.hash.slice(1).split('&').map(decodeURIComponent); state.touched = true; }
poll();

// The page of `convoy runs serve`: polls /api/, keeps what it showed, and draws curves as SVG.
const COLORS = ['#1f77d0', '#e0762f', '#2a9d5c', '#c8449c', '#8a63d2', '#b08900', '#d64545', '#1a9aa0'];
const POLL_MS = 2000;
const state = {runs: [], text: '', shown: [], curves: {}, seen: {}, at: 0, touched: false, picked: {}};

const colorOf = name => COLORS[Math.max(0, state.shown.indexOf(name)) % COLORS.length];
const runOf = name => state.runs.find(run => run.name === name);
const isSweep = name => (runOf(name) || {}).kind === 'sweep';
const visibleRuns = () => {
  const words = byId('filter').value.toLowerCase().split(/\s+/).filter(Boolean);
  return state.runs.filter(run => words.every(word => `${run.name} ${run.state} ${run.kind}`.toLowerCase().includes(word)));
};

// --- the list ---

const UNITS = {train: 'step', process: 'row', sweep: 'cell'};
const doneOf = run => run.total_steps ? `${run.steps}/${run.total_steps}` : String(run.steps);

function figuresOf(run) {
  if (run.kind === 'train') return `step ${doneOf(run)}  loss ${figure(run.loss)}  eval ${figure(run.eval_loss)}`;
  return `${UNITS[run.kind]}s ${doneOf(run)}` + (run.kind === 'process' && run.speed ? `  ${figure(run.speed, 0)} tokens/s` : '');
}

function itemOf(run, index) {
  const shown = state.shown.includes(run.name);
  const dot = element('span', {class: 'dot'});
  if (shown) dot.style.background = colorOf(run.name);
  const figures = element('span', {class: 'figures'}, figuresOf(run));
  if (run.failed > 0) figures.append(element('span', {class: 'failure'}, `  ${run.failed} failed`));
  figures.append('  ' + age(run.updated));
  const item = element('li', {tabindex: index === state.at ? '0' : '-1', role: 'option', 'aria-selected': String(shown), 'data-run': run.name}, dot,
    element('span', {class: 'name'}, run.name, ...(run.kind === 'train' ? [] : [element('span', {class: 'kind'}, run.kind)])),
    element('span', {class: 'state ' + run.state}, run.state), figures);
  if (run.total_steps && run.state === 'running') item.append(element('progress', {max: run.total_steps, value: run.steps, 'aria-label': 'progress'}));
  item.addEventListener('click', event => { state.at = index; choose(run.name, !(event.ctrlKey || event.metaKey || event.target === dot)); });
  return item;
}

function drawList() {
  const list = byId('runs');
  const runs = visibleRuns();
  const focused = document.activeElement && document.activeElement.dataset ? document.activeElement.dataset.run : null;
  state.at = Math.max(0, Math.min(state.at, runs.length - 1));
  list.replaceChildren(...runs.map(itemOf));
  byId('count').textContent = runs.length === state.runs.length ? `${runs.length} runs` : `${runs.length} of ${state.runs.length} runs`;
  if (focused) { const item = list.querySelector(`[data-run="${CSS.escape(focused)}"]`); if (item) item.focus({preventScroll: true}); }
}

// Curves of several runs lie over each other; a sweep is shown alone.
function choose(name, alone) {
  state.touched = true;
  if (alone || isSweep(name) || state.shown.some(isSweep)) state.shown = [name];
  else if (state.shown.includes(name)) state.shown = state.shown.filter(other => other !== name);
  else state.shown = [...state.shown, name];
  location.hash = state.shown.map(encodeURIComponent).join('&');
  drawList();
  update(true).catch(fail);
}

// --- the curves of runs ---

// Tags that belong together share a chart; bytes are shown in GiB.
function chartOf(tag) {
  if (tag === 'train/loss' || tag === 'eval/loss') return 'loss';
  const words = tag.replace(/_bytes$/, ', GiB').replaceAll('_', ' ').replace(/^train\//, '');
  const rank = words.match(/^rank\/\d+\/(.*)$/);
  return rank ? 'ranks: ' + rank[1] : words;
}
const ORDER = ['loss', 'tokens per second', 'samples per second', 'learning rate', 'grad norm'];

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
  power_w: 'devices: power, W', temp_c: 'devices: temperature, C', host_cpu_pct: 'host: CPUs busy, %', host_mem_used_mib: 'host: memory, MiB',
  tokens_per_second: 'engines: tokens per second', requests_running: 'engines: requests running', requests_waiting: 'engines: requests waiting',
  kv_use: 'engines: KV cache in use, of 1'};

// A panel for each host; its devices have its name where there are several hosts.
function devicePanel(host, curves, named) {
  const charts = Object.entries(DEVICE_CHARTS).map(([column, title]) => {
    const tags = Object.keys(curves).filter(tag => tag.endsWith('/' + column));
    const series = tags.map((tag, index) => {
      const device = tag.slice(0, -column.length - 1);
      return {label: named ? (device === 'host' ? host : `${host}:${device}`) : device, color: COLORS[index % COLORS.length], points: curves[tag], smooth: false};
    });
    return series.length ? chart(title, series, 'second') : '';
  });
  return [...(named ? [element('h2', {class: 'whole'}, 'Devices of ' + host)] : []), ...charts];
}

async function drawDevices() {
  const place = byId('devices');
  if (state.shown.length !== 1 || isSweep(state.shown[0])) { place.replaceChildren(); return; }
  const hosts = Object.entries(await asJson('/api/devices', [['run', state.shown[0]]]));
  place.replaceChildren(...hosts.flatMap(([host, curves]) => devicePanel(host, curves, hosts.length > 1)));
}

// --- what stands beside the curves ---

async function drawFacts() {
  const one = state.shown.length === 1 ? await asJson('/api/run', [['run', state.shown[0]]]) : null;
  const several = state.shown.length > 1 ? await asJson('/api/comparison', state.shown.map(name => ['run', name])) : null;
  const facts = [], tables = [];
  if (one) {
    const {summary} = one;
    facts.push(element('h2', {}, summary.name + ' '), element('p', {}, element('span', {class: 'state ' + summary.state}, summary.state),
      ` at ${UNITS[summary.kind]} ${summary.steps}${summary.total_steps ? ' of ' + summary.total_steps : ''}, in ${one.folder}`));
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
  const choice = element('select', {'aria-label': label}, ...values.map(value => element('option', {value}, (name + ' ' + value).trim())));
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
  const body = element('pre', {tabindex: '0', 'aria-label': 'end of the log'});
  const show = async file => {
    body.textContent = await (await ask('/api/log', [['run', run.summary.name], ['file', file]])).text() || '(empty)';
    body.scrollTop = body.scrollHeight;
  };
  place.replaceChildren(element('h2', {}, 'Log'), picker('file of the log', run.logs, '', show), body);
  await show(pickedOf('file of the log', run.logs));
}

// --- keeping current ---

function fail(error) { console.error(error); byId('notice').textContent = error.message + (error instanceof TypeError ? ': does `convoy runs serve` still run?' : ''); }

async function drawShown() {
  if (state.shown.length === 1 && isSweep(state.shown[0])) { await drawSweep(state.shown[0]); return; }
  drawCharts();
  await drawDevices();
  await drawFacts();
}

async function update(whole) {
  const answer = await ask('/api/runs');
  const text = await answer.text();
  byId('notice').textContent = '';
  if (text !== state.text) {
    const {folder, runs} = JSON.parse(text);
    state.text = text;
    state.runs = runs;
    byId('folder').textContent = folder;
    if (!runs.length) byId('notice').textContent = `No runs or sweeps under ${folder} yet: they appear when one starts.`;
    if (!state.touched && !state.shown.length && runs.length) { state.shown = [(runs.find(run => run.steps > 0) || runs[0]).name]; whole = true; }
    state.shown = state.shown.filter(runOf);
    drawList();
  }
  const lookOf = name => { const run = runOf(name); return [run.updated, run.steps, run.state].join(); };
  const changed = state.shown.filter(name => state.seen[name] !== lookOf(name));
  if (changed.length && !isSweep(changed[0])) Object.assign(state.curves, await asJson('/api/curves', changed.map(name => ['run', name])));
  for (const name of changed) state.seen[name] = lookOf(name);
  if (changed.length || whole) await drawShown();
  document.body.dataset.ready = 'true';
}

async function poll() {
  if (!document.hidden) await update(false).catch(fail);
  setTimeout(poll, POLL_MS);
}

byId('filter').addEventListener('input', drawList);
byId('log').addEventListener('change', () => drawShown().catch(fail));
byId('smoothing').addEventListener('input', () => { byId('smoothing-value').textContent = Number(byId('smoothing').value).toFixed(2); if (!state.shown.some(isSweep)) drawCharts(); });
const toggleHelp = () => { const help = byId('help'); if (help.open) help.close(); else help.showModal(); };
byId('help-button').addEventListener('click', toggleHelp);
byId('help-close').addEventListener('click', toggleHelp);

function moveTo(index) {
  const items = byId('runs').children;
  if (!items.length) return;
  if (items[state.at]) items[state.at].tabIndex = -1;
  state.at = Math.min(items.length - 1, Math.max(0, index));
  items[state.at].tabIndex = 0;
  items[state.at].focus();
}

document.addEventListener('keydown', event => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const field = event.target.matches('input[type=search], select, textarea');
  if (event.key === 'Escape' && field) event.target.blur();
  if (field || (byId('help').open && event.key !== '?')) return;
  const item = byId('runs').children[state.at];
  const run = item && item.dataset.run;
  const keys = {
    j: () => moveTo(state.at + 1), k: () => moveTo(state.at - 1), ArrowDown: () => moveTo(state.at + 1), ArrowUp: () => moveTo(state.at - 1),
    Home: () => moveTo(0), End: () => moveTo(byId('runs').children.length - 1),
    ' ': () => run && choose(run, false), Enter: () => run && choose(run, true), '/': () => byId('filter').focus(),
    l: () => byId('log').click(), '?': toggleHelp,
    s: () => { const slide = byId('smoothing'); slide.value = Number(slide.value) > 0 ? 0 : 0.6; slide.dispatchEvent(new Event('input')); },
  };
  // Arrows scroll the page and move sliders, a blank presses buttons: those keys belong to the list only inside it.
  const inside = event.target.matches('#runs li');
  const shared = ['ArrowDown', 'ArrowUp', 'Home', 'End', ' ', 'Enter'].includes(event.key);
  if (keys[event.key] && (inside || !shared)) { event.preventDefault(); keys[event.key](); }
});
const shownByAddress = () => { state.shown = location.hash.slice(1).split('&').filter(Boolean).map(decodeURIComponent); state.touched = state.shown.length > 0; };
shownByAddress();
// Back and forward of the browser; choose() has shown already what it writes there.
window.addEventListener('hashchange', () => {
  const wanted = location.hash.slice(1);
  if (wanted === state.shown.map(encodeURIComponent).join('&')) return;
  shownByAddress();
  if (state.runs.length) { state.shown = state.shown.filter(runOf); drawList(); }
  update(true).catch(fail);
});
poll();

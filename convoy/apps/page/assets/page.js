// The page of `convoy runs serve`: polls /api/, keeps unchanged parts, and draws curves as SVG.
const COLORS = [
  '#1f77d0',
  '#e0762f',
  '#2a9d5c',
  '#c8449c',
  '#8a63d2',
  '#b08900',
  '#d64545',
  '#1a9aa0',
];
const POLL_MS = 2000;
const state = {
  runs: [],
  text: '',
  shown: [],
  curves: {},
  seen: {},
  at: 0,
  touched: false,
  picked: {},
};

const colorOf = name => COLORS[Math.max(0, state.shown.indexOf(name)) % COLORS.length];
const runOf = name => state.runs.find(run => run.name === name);
// Short names of the shown runs: without the folder that all have in common.
function shortName(name) {
  const parts = state.shown.map(each => each.split('/'));
  let shared = 0;
  while (parts.every(words => shared < words.length - 1 && words[shared] === parts[0][shared]))
    shared++;
  return name.split('/').slice(shared).join('/');
}
const isSweep = name => runOf(name)?.kind === 'sweep';
const visibleRuns = () => {
  const words = byId('filter').value.toLowerCase().split(/\s+/).filter(Boolean);
  return state.runs.filter(run =>
    words.every(word => `${run.name} ${run.state} ${run.kind}`.toLowerCase().includes(word)),
  );
};

// --- the list ---

const UNITS = {train: 'step', process: 'row', sweep: 'cell'};
const doneOf = run => (run.total_steps ? `${run.steps}/${run.total_steps}` : String(run.steps));

// Speed and remaining time of a run in progress.
function paceOf(run) {
  if (run.state !== 'running') return [];
  return [
    run.speed ? `${figure(run.speed, 0)}\u00a0${run.speed_unit}` : '',
    run.seconds_left ? `${duration(run.seconds_left)}\u00a0left` : '',
  ].filter(Boolean);
}

function figuresOf(run) {
  if (run.state === 'reading') return `${Math.round(100 * run.read)} % of it is read`;
  const came =
    run.kind === 'train'
      ? [`step ${doneOf(run)}`, `loss ${figure(run.loss)}`, `eval ${figure(run.eval_loss)}`]
      : [`${UNITS[run.kind]}s ${doneOf(run)}`];
  return [...came, ...paceOf(run)].join('  ');
}

function itemOf(run, index) {
  const shown = state.shown.includes(run.name);
  const dot = element('span', {class: 'dot'});
  if (shown) dot.style.background = colorOf(run.name);
  const figures = element('span', {class: 'figures'}, figuresOf(run));
  if (run.failed > 0) figures.append(element('span', {class: 'failure'}, `  ${run.failed} failed`));
  figures.append(`  ${age(run.updated)}`);
  const item = element(
    'li',
    {
      tabindex: index === state.at ? '0' : '-1',
      role: 'option',
      'aria-selected': String(shown),
      'data-run': run.name,
    },
    dot,
    element(
      'span',
      {class: 'name'},
      run.name,
      ...(run.kind === 'train' ? [] : [element('span', {class: 'kind'}, run.kind)]),
    ),
    element('span', {class: `state ${run.state}`}, run.state),
    figures,
  );
  if (run.total_steps && run.state === 'running')
    item.append(
      element('progress', {max: run.total_steps, value: run.steps, 'aria-label': 'progress'}),
    );
  item.addEventListener('click', event => {
    state.at = index;
    choose(run.name, !(event.ctrlKey || event.metaKey || event.target === dot));
  });
  return item;
}

function countsOf(runs) {
  const sweeps = runs.filter(run => run.kind === 'sweep').length;
  const counted = (count, what) => `${count} ${what}${count === 1 ? '' : 's'}`;
  return counted(runs.length - sweeps, 'run') + (sweeps ? `, ${counted(sweeps, 'sweep')}` : '');
}

function drawList() {
  const list = byId('runs');
  const runs = visibleRuns();
  const focused = document.activeElement?.dataset ? document.activeElement.dataset.run : null;
  state.at = Math.max(0, Math.min(state.at, runs.length - 1));
  list.replaceChildren(...runs.map(itemOf));
  byId('count').textContent =
    (runs.length === state.runs.length ? '' : `${runs.length} of `) + countsOf(state.runs);
  if (focused) {
    const item = list.querySelector(`[data-run="${CSS.escape(focused)}"]`);
    if (item) item.focus({preventScroll: true});
  }
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
  const words = tag
    .replace(/_bytes$/, ', GiB')
    .replaceAll('_', ' ')
    .replace(/^train\//, '');
  const rank = words.match(/^rank\/\d+\/(.*)$/);
  return rank ? `ranks: ${rank[1]}` : words;
}
// Counts and times that say little about how a run goes: behind a fold.
const MINOR = /(^|\/|: )(generated rows|supervised tokens|(generate )?seconds)$/;
const ORDER = ['loss', 'tokens per second', 'samples per second', 'learning rate', 'grad norm'];

function drawCharts() {
  const charts = new Map();
  for (const name of state.shown)
    for (const [tag, points] of Object.entries(state.curves[name] || {}).sort(
      ([left], [right]) => left.startsWith('eval/') - right.startsWith('eval/'),
    )) {
      const title = chartOf(tag);
      if (!charts.has(title)) charts.set(title, []);
      const series = charts.get(title);
      const scale = tag.endsWith('_bytes') ? 2 ** -30 : 1;
      const rank = (tag.match(/^rank\/(\d+)\//) || [])[1];
      const alone = state.shown.length === 1;
      const label = [
        alone && (rank !== undefined || title === 'loss') ? '' : shortName(name),
        rank !== undefined ? `rank ${rank}` : '',
        title === 'loss' ? tag.split('/')[0] : '',
      ]
        .filter(Boolean)
        .join(' ');
      const color = alone ? COLORS[series.length % COLORS.length] : colorOf(name);
      series.push({
        label,
        color,
        run: name,
        points:
          scale === 1
            ? points
            : points.map(([step, ...values]) => [
                step,
                ...values.map(value => (value === null ? null : value * scale)),
              ]),
        smooth:
          !tag.startsWith('eval/') && tag !== 'train/learning_rate' && !tag.endsWith('_bytes'),
        dashed: tag.startsWith('eval/') || (rank > 0 && !alone),
      });
    }
  const placeOf = title => {
    const at = ORDER.indexOf(title);
    return at < 0 ? ORDER.length + (title.startsWith('ranks') ? 1 : 0) : at;
  };
  const titles = [...charts.keys()].sort(
    (left, right) => placeOf(left) - placeOf(right) || left.localeCompare(right),
  );
  const kinds = new Set(state.shown.map(name => runOf(name)?.kind));
  const axis = countAxis(kinds.size === 1 ? UNITS[[...kinds][0]] : 'step or row');
  const drawn = minor =>
    titles
      .filter(title => MINOR.test(title) === minor)
      .map(title => chart(title, charts.get(title), axis));
  const rest = drawn(true);
  byId('charts').replaceChildren(...drawn(false));
  byId('more-charts').replaceChildren(...rest);
  byId('more').hidden = !rest.length;
}

const DEVICE_CHARTS = {
  gpu_util_pct: 'devices: busy, %',
  sm_active_pct: 'devices: multiprocessors active, %',
  mem_used_mib: 'devices: memory, MiB',
  power_w: 'devices: power, W',
  temp_c: 'devices: temperature, C',
  host_cpu_pct: 'host: CPUs busy, %',
  host_mem_used_mib: 'host: memory, MiB',
  job_cpu_cores: 'job: CPUs at work',
  tokens_per_second: 'engines: tokens per second',
  requests_running: 'engines: requests running',
  requests_waiting: 'engines: requests waiting',
  kv_use: 'engines: KV cache in use, of 1',
};

// A panel for each host; its devices have its name where there are several hosts.
function devicePanel(host, curves, named) {
  const charts = Object.entries(DEVICE_CHARTS).map(([column, title]) => {
    const tags = Object.keys(curves).filter(tag => tag.endsWith(`/${column}`));
    const series = tags.map((tag, index) => {
      const device = tag.slice(0, -column.length - 1);
      return {
        label: named ? (device === 'host' ? host : `${host}:${device}`) : device,
        color: COLORS[index % COLORS.length],
        points: curves[tag],
        smooth: false,
        named,
      };
    });
    return series.length
      ? chart(title, series, TIME_AXIS, title.endsWith('%') ? [0, 100] : null)
      : '';
  });
  return [...(named ? [element('h2', {class: 'whole'}, `Devices of ${host}`)] : []), ...charts];
}

async function drawDevices() {
  const place = byId('devices');
  if (state.shown.length !== 1 || isSweep(state.shown[0])) {
    place.replaceChildren();
    return;
  }
  const hosts = Object.entries(await asJson('/api/devices', [['run', state.shown[0]]]));
  place.replaceChildren(
    ...hosts.flatMap(([host, curves]) => devicePanel(host, curves, hosts.length > 1)),
  );
}

// --- beside the curves ---

function comparisonOf(several) {
  const runs = state.shown.map(runOf).filter(Boolean),
    names = runs.map(run => shortName(run.name));
  const line = (name, value) => [name, ...runs.map(run => value(run) ?? null)];
  const came = table(
    'Where they came to',
    ['figure', ...names],
    [
      line('state', run => run.state),
      line('steps', doneOf),
      line('loss', run => run.loss),
      line('best evaluation loss', run => run.eval_loss),
      line('tokens per second', run => run.speed && Math.round(run.speed)),
    ],
  );
  if (several.settings.length)
    return [
      ...table(
        'Settings that differ',
        ['setting', ...names],
        several.settings.map(each => [each.name, ...each.values]),
      ),
      ...came,
    ];
  const none = several.without_settings;
  return [
    element(
      'p',
      {},
      none.length
        ? `Settings are not compared: ${none.join(', ')} recorded none.`
        : 'The settings are the same.',
    ),
    ...came,
  ];
}

// The origin of a setting, or of the setting that contains it.
function originOf(key, origins) {
  for (let path = key; path; path = path.slice(0, Math.max(0, path.lastIndexOf('.'))))
    if (origins[path]) return origins[path];
  return 'default';
}

// First the user's choices for this run, then those of a preset or the program; defaults are folded.
function settingsOf({config, origins}) {
  const nearness = origin =>
    [/^command line/, /^environment/, /^(?!preset|decided|default)/, /^preset/].findIndex(kind =>
      kind.test(origin),
    ) >>> 0;
  const rows = flat(config || {}, '', []).map(([key, value]) => [
    key,
    value,
    originOf(key, origins || {}),
  ]);
  const chosen = rows
    .filter(([, , origin]) => origin !== 'default')
    .sort((left, right) => nearness(left[2]) - nearness(right[2]));
  const untouched = rows
    .filter(([, , origin]) => origin === 'default')
    .map(([key, value]) => [key, value]);
  const defaults = table('Settings at their defaults', ['setting', 'value'], untouched);
  if (!chosen.length) return defaults;
  return [
    ...table('Settings', ['setting', 'value', 'from'], chosen),
    ...(untouched.length
      ? [folded(`${untouched.length} settings at their defaults`, 'defaults', ...defaults.slice(1))]
      : []),
  ];
}

async function drawFacts() {
  const one = state.shown.length === 1 ? await asJson('/api/run', [['run', state.shown[0]]]) : null;
  const several =
    state.shown.length > 1
      ? await asJson(
          '/api/comparison',
          state.shown.map(name => ['run', name]),
        )
      : null;
  const facts = [],
    tables = [];
  if (one) {
    const {summary} = one;
    facts.push(
      element('h2', {}, `${summary.name} `),
      element(
        'p',
        {},
        element('span', {class: `state ${summary.state}`}, summary.state),
        ` at ${[`${UNITS[summary.kind]} ${summary.steps}${summary.total_steps ? ` of ${summary.total_steps}` : ''}`, ...paceOf(summary), `in ${one.folder}`].join(', ')}`,
      ),
    );
    if (summary.failure) facts.push(element('p', {class: 'failure'}, summary.failure));
    const identity = one.identity || {};
    tables.push(
      ...table(
        'Figures',
        ['figure', 'value'],
        flat(one.metrics || {}, '', []).filter(([, value]) => value !== 'null'),
      ),
      ...settingsOf(identity),
      ...table('Stamp', ['what a resumed run shares', 'value'], flat(identity.stamp || {}, '', [])),
    );
  }
  if (several) facts.push(...comparisonOf(several));
  renew('facts', facts);
  renew('tables', tables, one && JSON.stringify([one.summary.name, one.metrics, one.identity]));
  drawChat(one);
  await drawSamples(one);
  await drawRollouts(one);
  await drawLog(one);
}

// Links to the parts of a long page.
function drawPlaces() {
  const parts = [
    ['charts', 'curves'],
    ['devices', 'devices'],
    ['chat', 'questions'],
    ['samples', 'samples'],
    ['rollouts', 'rollouts'],
    ['log-view', 'log'],
    ['tables', 'tables'],
  ].filter(([id]) => byId(id).childElementCount);
  renew(
    'places',
    parts.map(([id, name]) => {
      const button = element('button', {type: 'button'}, name);
      button.addEventListener('click', () => {
        byId(id).scrollIntoView({block: 'start'});
        byId(id).focus({preventScroll: true});
      });
      return button;
    }),
  );
}

// A choice stays while the page updates its surroundings.
const pickedOf = (label, values) =>
  values.find(value => String(value) === state.picked[label]) ?? values[0];
function picker(label, values, name, show) {
  const choice = element(
    'select',
    {'aria-label': label},
    ...values.map(value => element('option', {value}, `${name} ${value}`.trim())),
  );
  choice.value = String(pickedOf(label, values));
  choice.addEventListener('change', () => {
    state.picked[label] = choice.value;
    show(choice.value).catch(fail);
  });
  return choice;
}

// --- keeping current ---

function fail(error) {
  console.error(error);
  byId('notice').textContent =
    error.message + (error instanceof TypeError ? ': does `convoy runs serve` still run?' : '');
}

async function drawShown() {
  if (state.shown.length === 1 && isSweep(state.shown[0])) {
    await drawSweep(state.shown[0]);
  } else {
    drawCharts();
    await drawDevices();
    await drawFacts();
  }
  drawPlaces();
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
    if (!runs.length)
      byId('notice').textContent =
        `No runs or sweeps under ${folder} yet: they appear when one starts.`;
    if (!state.touched && !state.shown.length && runs.length) {
      state.shown = [(runs.find(run => run.steps > 0) || runs[0]).name];
      whole = true;
    }
    state.shown = state.shown.filter(runOf);
    drawList();
  }
  // A run that is still being read is drawn now and then, not at every step of the reading.
  const lookOf = name => {
    const run = runOf(name);
    return run.state === 'reading'
      ? Math.floor(run.read * 10)
      : [run.updated, run.steps, run.state].join();
  };
  const changed = state.shown.filter(name => state.seen[name] !== lookOf(name));
  if (changed.length && !isSweep(changed[0]))
    Object.assign(
      state.curves,
      await asJson(
        '/api/curves',
        changed.map(name => ['run', name]),
      ),
    );
  for (const name of changed) state.seen[name] = lookOf(name);
  if (changed.length || whole) await drawShown();
  if (!state.runs.some(run => run.state === 'reading')) document.body.dataset.ready = 'true';
}

async function poll() {
  if (!document.hidden) await update(false).catch(fail);
  setTimeout(poll, state.runs.some(run => run.state === 'reading') ? 50 : POLL_MS);
}

byId('filter').addEventListener('input', drawList);
byId('log').addEventListener('change', () => drawShown().catch(fail));
byId('smoothing').addEventListener('input', () => {
  byId('smoothing-value').textContent = Number(byId('smoothing').value).toFixed(2);
  if (!state.shown.some(isSweep)) drawCharts();
});
const toggleHelp = () => {
  const help = byId('help');
  if (help.open) help.close();
  else help.showModal();
};
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
  const run = item?.dataset.run;
  const keys = {
    j: () => moveTo(state.at + 1),
    k: () => moveTo(state.at - 1),
    ArrowDown: () => moveTo(state.at + 1),
    ArrowUp: () => moveTo(state.at - 1),
    Home: () => moveTo(0),
    End: () => moveTo(byId('runs').children.length - 1),
    ' ': () => run && choose(run, false),
    Enter: () => run && choose(run, true),
    '/': () => byId('filter').focus(),
    l: () => byId('log').click(),
    '?': toggleHelp,
    s: () => {
      const slide = byId('smoothing');
      slide.value = Number(slide.value) > 0 ? 0 : 0.6;
      slide.dispatchEvent(new Event('input'));
    },
  };
  // Arrows scroll the page and move sliders, a blank presses buttons: those keys belong to the list only inside it.
  const inside = event.target.matches('#runs li');
  const shared = ['ArrowDown', 'ArrowUp', 'Home', 'End', ' ', 'Enter'].includes(event.key);
  if (keys[event.key] && (inside || !shared)) {
    event.preventDefault();
    keys[event.key]();
  }
});
const shownByAddress = () => {
  state.shown = location.hash.slice(1).split('&').filter(Boolean).map(decodeURIComponent);
  state.touched = state.shown.length > 0;
};
shownByAddress();
// Back and forward of the browser; choose() has shown already what it writes there.
window.addEventListener('hashchange', () => {
  const wanted = location.hash.slice(1);
  if (wanted === state.shown.map(encodeURIComponent).join('&')) return;
  shownByAddress();
  if (state.runs.length) {
    state.shown = state.shown.filter(runOf);
    drawList();
  }
  update(true).catch(fail);
});
poll();

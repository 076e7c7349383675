// --- a sweep ---

const asTable = (heading, {columns, rows}) => table(heading, columns, rows);

function figureLink(sweep, name) {
  return `/api/sweep/file?${new URLSearchParams([
    ['sweep', sweep],
    ['file', name],
  ])}`;
}

// On a phone a figure keeps a size that can be read, and is moved below the window.
const paperAround = (label, drawn) =>
  element('div', {class: 'paper', tabindex: '0', role: 'region', 'aria-label': label}, drawn);
const paperOf = image => paperAround(image.alt, element('img', image));

// The figure as a part of the page: the pointer on a line names its seed, and lights all lines of that seed.
function lightSeeds(drawn) {
  drawn.addEventListener('pointerover', event => {
    const seed = event.target.closest('[data-seed]')?.dataset.seed;
    drawn.classList.toggle('one-seed', seed !== undefined);
    for (const line of drawn.querySelectorAll('[data-seed]'))
      line.classList.toggle('lit', line.dataset.seed === seed);
  });
  return drawn;
}

async function currentFigure(name, log, at) {
  const text = await (await ask('/api/sweep/figure', [['sweep', name], ...log, ['at', at]])).text();
  const drawn = document.importNode(
    new DOMParser().parseFromString(text, 'image/svg+xml').documentElement,
    true,
  );
  return paperAround(
    `median and quartiles over seeds, each seed, and guesses that passed, of ${name}`,
    lightSeeds(drawn),
  );
}

// The picture of the current results, and the figures that the sweep wrote. For a figure in two formats the SVG is shown.
async function drawSweepFigures(one) {
  const {name, updated, steps} = one.summary;
  const log = byId('log').checked ? [['log', '1']] : [];
  const drawn = [
    element(
      'figure',
      {class: 'whole', 'data-chart': 'sweep'},
      element('figcaption', {}, 'Results so far'),
      await currentFigure(name, log, `${updated}.${steps}`),
    ),
  ];
  const stems = new Set(
    one.figures.filter(file => file.name.endsWith('.svg')).map(file => file.name.slice(0, -4)),
  );
  for (const file of one.figures.filter(
    each => each.name.endsWith('.svg') || !stems.has(each.name.slice(0, -4)),
  ))
    drawn.push(
      element(
        'figure',
        {'data-figure': file.name},
        element(
          'figcaption',
          {},
          element(
            'a',
            {href: figureLink(name, file.name), target: '_blank', rel: 'noopener'},
            file.name,
          ),
          element('span', {class: 'at'}, age(file.changed)),
        ),
        paperOf({src: figureLink(name, file.name), alt: file.name, loading: 'lazy'}),
      ),
    );
  byId('charts').replaceChildren(...drawn);
}

// One of the files at a time.
async function writtenTables(one) {
  if (!one.tables.length) return [];
  const names = one.tables.map(file => file.name);
  const body = element('div');
  const show = async file => {
    const [columns, ...rows] = rowsOfCsv(
      await (
        await ask('/api/sweep/file', [
          ['sweep', one.summary.name],
          ['file', file],
        ])
      ).text(),
    );
    body.replaceChildren(...table(file, (columns || []).map(String), rows));
  };
  await show(pickedOf('written table', names));
  return [element('h2', {}, 'Written tables'), picker('written table', names, '', show), body];
}

async function drawSweep(name) {
  const one = await asJson('/api/sweep', [['sweep', name]]);
  if (!one) return;
  const {summary} = one;
  renew('facts', [
    element('h2', {}, name),
    element(
      'p',
      {},
      element('span', {class: `state ${summary.state}`}, summary.state),
      ` ${one.counts || ''}, in ${one.store}`,
    ),
    summary.failure ? element('p', {class: 'failure'}, summary.failure) : '',
  ]);
  byId('devices').replaceChildren();
  byId('more').hidden = true;
  for (const id of ['log-view', 'samples', 'rollouts', 'chat']) renew(id, []);
  if (!one.cells) {
    byId('charts').replaceChildren();
    renew('tables', []);
    return;
  }
  await drawSweepFigures(one);
  const shownCells =
    one.cells.rows.length === one.num_cells
      ? 'Cells'
      : `The first ${one.cells.rows.length} of ${one.num_cells} cells`;
  renew('tables', [
    ...asTable('Failed cells', one.failures),
    ...asTable('Over seeds', one.over_seeds),
    ...table(
      'Axes',
      ['name', 'values'],
      Object.entries(one.axes).map(([axis, values]) => [
        axis,
        values.map(value => (typeof value === 'string' ? value : JSON.stringify(value))).join(', '),
      ]),
    ),
    ...table(
      'Settings',
      ['setting', 'value'],
      [['workload', one.workload], ['version', one.version], ...flat(one.settings, '', [])],
    ),
    ...asTable(shownCells, one.cells),
    ...(await writtenTables(one)),
  ]);
}

// --- answers of evaluations, and logs ---

const ROLES = {
  input: 'question',
  prompt: 'question',
  pred: 'answer',
  prediction: 'answer',
  answer: 'answer',
  ref: 'reference',
  reference: 'reference',
};

// One answered row: a text beside the next, the end of a long one in sight. Where there is a reference, whether the answer is the same text.
function sampleOf(row) {
  const texts = Object.entries(row).map(([key, value]) => {
    const body = element(
      'pre',
      {tabindex: '0'},
      typeof value === 'string' ? value : JSON.stringify(value, null, 1),
    );
    return element('div', {class: ROLES[key] || ''}, element('h3', {}, ROLES[key] || key), body);
  });
  return element('li', {class: `sample${isSame(row) === false ? ' differs' : ''}`}, ...texts);
}

// true, false, or undefined where there is nothing to compare.
function isSame(row) {
  const of = role =>
    Object.entries(row)
      .filter(([key, value]) => ROLES[key] === role && typeof value === 'string')
      .map(([, value]) => value.trim())[0];
  const [answer, reference] = [of('answer'), of('reference')];
  return answer === undefined || reference === undefined ? undefined : answer === reference;
}

async function drawSamples(run) {
  if (!run?.samples.length) {
    renew('samples', []);
    return;
  }
  const steps = run.samples.slice().reverse();
  const body = element('ul', {class: 'samples'});
  const count = element('span', {class: 'at'});
  const only = element('input', {type: 'checkbox'});
  only.checked = Boolean(state.picked.differing);
  const show = async step => {
    const rows = await asJson('/api/samples', [
      ['run', run.summary.name],
      ['step', step],
    ]);
    const differing = rows.filter(row => isSame(row) === false);
    count.textContent = rows.some(row => isSame(row) !== undefined)
      ? `${rows.length} answers, ${rows.length - differing.length} with the same text as the reference`
      : `${rows.length} answers`;
    body.replaceChildren(...(only.checked ? differing : rows).map(sampleOf));
    for (const text of body.querySelectorAll('.question pre')) text.scrollTop = text.scrollHeight;
  };
  only.addEventListener('change', () => {
    state.picked.differing = only.checked;
    show(pickedOf('step of the samples', steps)).catch(fail);
  });
  const isNew = renew(
    'samples',
    [
      element('h2', {}, 'Samples'),
      element(
        'p',
        {class: 'choices'},
        picker('step of the samples', steps, 'step', show),
        element('label', {}, only, 'only those that differ'),
        count,
      ),
      body,
    ],
    `${run.summary.name}|${steps.join()}`,
  );
  if (isNew) await show(pickedOf('step of the samples', steps));
}

// The texts that a step learnt from: the best, the worst and the longest. Texts for a teacher may
// have no rewards.
function rolloutOf(row) {
  if (row.damage)
    return element(
      'li',
      {class: 'sample'},
      element(
        'div',
        {class: 'question'},
        element('h3', {}, 'damaged file'),
        element('pre', {}, row.damage),
      ),
    );
  const rewarded = 'reward' in row ? `reward ${row.reward}, advantage ${row.advantage}, ` : '';
  const facts = `${row.shown_as}: ${rewarded}${row.text_tokens} tokens`;
  return element(
    'li',
    {class: 'sample'},
    element('div', {class: 'question'}, element('h3', {}, facts), element('pre', {}, row.prompt)),
    element('div', {class: 'answer'}, element('h3', {}, 'text'), element('pre', {}, row.text)),
  );
}

async function drawRollouts(run) {
  if (!run?.rollouts?.length) {
    renew('rollouts', []);
    return;
  }
  const steps = run.rollouts.slice().reverse();
  const body = element('ul', {class: 'samples'});
  const show = async step => {
    const rows = await asJson('/api/rollouts', [
      ['run', run.summary.name],
      ['step', step],
    ]);
    body.replaceChildren(...rows.map(rolloutOf));
  };
  const isNew = renew(
    'rollouts',
    [
      element('h2', {}, 'Rollouts'),
      element('p', {class: 'choices'}, picker('step of the rollouts', steps, 'step', show)),
      body,
    ],
    `${run.summary.name}|${steps.join()}`,
  );
  if (isNew) await show(pickedOf('step of the rollouts', steps));
}

async function drawLog(run) {
  if (!run?.logs.length) {
    renew('log-view', []);
    return;
  }
  const show = async file => {
    const text =
      (await (
        await ask('/api/log', [
          ['run', run.summary.name],
          ['file', file],
        ])
      ).text()) || '(empty)';
    const body = byId('log-text');
    if (body.textContent === text) return;
    // A reader who has scrolled up stays there.
    const atEnd = body.scrollTop + body.clientHeight >= body.scrollHeight - 4;
    body.textContent = text;
    if (atEnd) body.scrollTop = body.scrollHeight;
  };
  renew(
    'log-view',
    [
      element('h2', {}, 'Log'),
      picker('file of the log', run.logs, '', show),
      element('pre', {id: 'log-text', tabindex: '0', 'aria-label': 'end of the log'}),
    ],
    `${run.summary.name}|${run.logs.join()}`,
  );
  await show(pickedOf('file of the log', run.logs));
}

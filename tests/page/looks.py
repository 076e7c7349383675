#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks the texts of charts and tables, with the light theme, with the dark theme and on a phone: looks.py URL [PICTURE_FOLDER]"""

import urllib.parse

import browser as chromium


def go_to(browser, *names):
    browser.value(
        "location.hash = " + repr("&".join(urllib.parse.quote(name, safe="") for name in names))
    )
    browser.expect(f"state.shown.join() === {','.join(names)!r}", "the runs are shown")


def equal(found, wanted, what):
    assert found == wanted, f"FAILED: {what}: {found!r}, wanted {wanted!r}"


def hovered(browser, title, step, last):
    """The text beside the title while the pointer is over `step` of a chart that goes from step 1 to `last`."""
    return browser.value(f"""(() => {{
      const paper = document.querySelector('[data-chart="{title}"] svg'), bounds = paper.getBoundingClientRect();
      const share = (LEFT + (WIDTH - LEFT - RIGHT) * ({step} - 1) / ({last} - 1)) / WIDTH;
      paper.dispatchEvent(new PointerEvent('pointermove', {{clientX: bounds.left + bounds.width * share}}));
      return paper.parentElement.querySelector('.at').textContent;
    }})()""")


def texts_of(browser, title):
    return browser.value(
        f"[...document.querySelectorAll('[data-chart=\"{title}\"] svg text')].map(each => each.textContent)"
    )


def check_running(browser):
    go_to(browser, "running")
    browser.expect(
        "document.querySelector('#facts h2')?.textContent.trim() === 'running' && document.querySelector('#tables .fold') !== null",
        "the run's facts",
    )
    pace = "930\u00a0tokens/s, 1\u00a0min\u00a0left"
    head = browser.value("document.querySelector('#facts p').textContent")
    assert f"at step 30 of 60, {pace}, in " in head, f"FAILED: the head has no pace: {head!r}"
    line = browser.value("document.querySelector('[data-run=running] .figures').textContent")
    for part in pace.split(", "):
        assert part in line, f"FAILED: the list has no pace: {line!r}"
    assert "left" not in browser.value(
        "document.querySelector('[data-run=long] .figures').textContent"
    ), "FAILED: an ended run has time left"

    equal(texts_of(browser, "skipped rows")[:2], ["0", "1"], "the axis of a count that is 0")
    assert "4 min" in texts_of(browser, "devices: busy, %"), (
        f"FAILED: a time axis has no unit: {texts_of(browser, 'devices: busy, %')}"
    )
    equal(texts_of(browser, "loss")[-1], "step", "the name of the axis")
    equal(
        hovered(browser, "loss", 9.4, 30),
        "step 9: train 0.4444",
        "hover between two steps, where nothing was evaluated",
    )
    equal(
        hovered(browser, "loss", 14.3, 30),
        "step 14: train 0.2857, eval 0.3357",
        "hover over an evaluation",
    )

    rows = "[...document.querySelectorAll('#tables > .scroll')].find(each => each.ariaLabel === 'Settings').querySelectorAll('tbody tr')"
    equal(
        browser.value(f"[...{rows}].map(row => row.cells[0].textContent)"),
        ["train.learning_rate", "model.name"],
        "the settings that were chosen",
    )
    equal(
        browser.value("document.querySelector('#tables .fold').open"),
        False,
        "defaults are folded away",
    )
    equal(
        browser.value("document.querySelector('#tables .fold td').textContent"),
        "train.batch_size",
        "the defaults are there",
    )
    browser.value("document.querySelector('#tables .fold summary').click()")
    browser.value("update(true).then(() => true)")
    equal(
        browser.value("document.querySelector('#tables .fold').open"),
        True,
        "what was opened stays open",
    )


def check_diverged(browser):
    go_to(browser, "diverged", "running")
    browser.expect(
        "document.querySelector('[data-chart=loss] .cut') !== null", "the axis of losses is cut"
    )
    text = browser.value("document.querySelector('[data-chart=loss] .cut').textContent")
    equal(
        text,
        "The axis ends at 4: diverged goes to 200000. A log axis shows all of it.",
        "what was cut",
    )
    assert "4" in texts_of(browser, "loss"), "FAILED: the others are flattened"
    assert browser.value(
        "document.querySelector('[data-chart=\"tokens per second\"] .cut') === null"
    ), "FAILED: a speed is cut"
    browser.value("byId('log').click()")
    browser.expect(
        "document.querySelector('[data-chart=loss]') && document.querySelector('.cut') === null",
        "a log axis shows all",
    )
    browser.value("byId('log').click()")


def check_phone_and_dark(browser, pictures):
    browser.ask(
        "Emulation.setDeviceMetricsOverride",
        {"width": 380, "height": 844, "deviceScaleFactor": 1, "mobile": False},
    )
    browser.ask(
        "Emulation.setEmulatedMedia",
        {"features": [{"name": "prefers-color-scheme", "value": "dark"}]},
    )
    go_to(browser, browser.value("state.runs.find(run => run.kind === 'sweep').name"))
    figure = "document.querySelector('[data-chart=sweep] svg')"
    browser.expect(
        f"{figure}?.clientWidth > 0 && document.querySelector('[data-figure] img') !== null",
        "the sweep's figures",
    )
    assert browser.value(f"{figure}.clientWidth") >= 900, (
        "FAILED: nobody can read the figure of a sweep on a phone"
    )
    assert browser.value("document.documentElement.scrollWidth") <= 380, (
        "FAILED: the page is wider than a phone"
    )
    assert browser.value(f"getComputedStyle({figure}).filter") != "none", (
        "FAILED: a figure shines in the dark"
    )
    equal(
        browser.value(
            "[...document.querySelectorAll('th')].filter(head => getComputedStyle(head).overflowWrap !== 'normal' || head.scrollWidth > head.clientWidth).length"
        ),
        0,
        "headers that break inside words, or do not fit",
    )
    # The pointer on a line of a seed highlights all lines of that seed.
    browser.value(
        f"{figure}.querySelector('[data-seed=\"1\"] *').dispatchEvent(new PointerEvent('pointerover', {{bubbles: true}}))"
    )
    equal(
        browser.value(
            f"[...new Set([...{figure}.querySelectorAll('.lit')].map(line => line.dataset.seed))].join()"
        ),
        "1",
        "the seeds that are lit",
    )
    equal(
        browser.value(f"{figure}.querySelector('.lit title').textContent.endsWith('seed 1')"),
        True,
        "a line names its seed",
    )
    browser.picture(pictures, "phone-dark-sweep")
    go_to(browser, "running")
    browser.expect("document.querySelector('[data-chart=loss]') !== null", "the curves")
    assert browser.value("document.documentElement.scrollWidth") <= 380, (
        "FAILED: the page is wider than a phone"
    )
    browser.picture(pictures, "phone-dark-run")


def check(browser, url, pictures):
    browser.ask("Page.enable")
    browser.ask("Page.navigate", {"url": url})
    browser.expect("document.body?.dataset.ready === 'true'", "the page is there", seconds=150)
    assert browser.value(
        "document.querySelector('link[rel=icon]').href.startsWith('data:image/svg+xml')"
    ), "FAILED: there is no icon"
    check_running(browser)
    browser.picture(pictures, "running")
    check_diverged(browser)
    browser.picture(pictures, "diverged")
    check_phone_and_dark(browser, pictures)


chromium.run(check, "looks")

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Uses the page without a mouse: keyboard.py URL [PICTURE_FOLDER]"""

import browser as chromium


def check(browser, url, pictures):
    browser.ask("Page.enable")
    browser.ask("Page.navigate", {"url": url})
    browser.expect("document.body?.dataset.ready === 'true'", "the page is there", seconds=150)
    focused = "document.activeElement.dataset.run"
    browser.press("j")
    browser.expect(f"{focused} === state.runs[1].name", "j goes to the next run")
    browser.press("k")
    browser.expect(f"{focused} === state.runs[0].name", "k goes back")
    browser.press("ArrowDown")
    browser.press("Enter")
    browser.expect(
        "state.shown.length === 1 && state.shown[0] === state.runs[1].name",
        "enter shows a run alone",
    )
    browser.expect(
        f"{focused} === state.runs[1].name", "the focus stays while the list is drawn again"
    )
    assert browser.value("getComputedStyle(document.activeElement).outlineStyle") != "none", (
        "FAILED: the focus cannot be seen"
    )
    browser.expect(
        "document.querySelector('#facts h2').textContent.trim() === state.shown[0]",
        "the run's facts",
    )
    browser.value("byId('tables').firstElementChild.id = 'kept'; update(true).then(() => true)")
    assert browser.value("byId('kept') !== null"), (
        "FAILED: a table is drawn again though nothing changed"
    )
    browser.press("j")
    browser.press(" ")
    browser.expect("state.shown.length === 2", "space shows a second one")
    browser.expect("document.querySelector('#facts table') !== null", "the comparison of both")
    browser.press("?")
    browser.expect("byId('help').open", "? opens the list of keys")
    browser.picture(pictures, "keys")
    browser.press("Escape")
    browser.expect("!byId('help').open", "escape closes it")
    browser.press("l")
    browser.expect("byId('log').checked", "l is the logarithmic axis")
    browser.press("/")
    browser.expect("document.activeElement.id === 'filter'", "/ goes to the filter")
    for letter in "sweep":
        browser.press(letter)
    browser.expect(
        "[...document.querySelectorAll('#runs li')].every(item => item.querySelector('.kind').textContent === 'sweep')",
        "the filter leaves sweeps",
    )
    browser.press("Escape")
    browser.press("j")
    browser.press("Enter")
    browser.expect(
        "document.querySelector('[data-chart=sweep] svg')?.clientWidth > 0",
        "a sweep's figure is drawn",
    )
    browser.expect(
        "document.querySelector('[data-figure] img')?.naturalWidth > 0",
        "a figure that it wrote is shown",
    )
    head = "[...document.querySelectorAll('#tables th button')].find(each => each.textContent === 'median')"
    browser.expect(f"{head} !== undefined", "the sweep's table is there")
    browser.value(f"{head}.focus()")
    browser.press("Enter")
    browser.expect(
        f"{head}.parentElement.getAttribute('aria-sort') === 'ascending'", "enter sorts a table"
    )
    column = f"(() => {{ const at = {head}.parentElement.cellIndex; return [...{head}.closest('table').tBodies[0].rows].map(row => row.cells[at].textContent).filter(text => text !== '–').map(Number); }})()"
    values = browser.value(column)
    assert len(values) > 1 and values == sorted(values), (
        f"FAILED: the table is not sorted: {values}"
    )
    browser.picture(pictures, "sweep")


chromium.run(check, "keyboard")

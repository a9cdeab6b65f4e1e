"""The style of the page: light and dark, wide and narrow, on paper."""

STYLE = """
:root {
  --paper: #f7f6f3; --card: #fff; --ink: #1d2226; --soft: #646b70; --line: #e4e1da; --grid: #ecebe6;
  --done: #0f7a6c; --would: #a9cfc8; --bad: #c2571a; --pale: #e3f0ed; --warn: #fbeee3;
}
@media screen and (prefers-color-scheme: dark) {
  :root {
    --paper: #13171a; --card: #1a1f23; --ink: #e9e7e2; --soft: #99a1a6; --line: #2b3237; --grid: #252b30;
    --done: #3fb8a6; --would: #2b5f58; --bad: #ef8f52; --pale: #1d3833; --warn: #38281c;
  }
}
* { box-sizing: border-box; }
html { -webkit-text-size-adjust: 100%; }
body {
  margin: 0; background: var(--paper); color: var(--ink);
  font: 15px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif;
  font-variant-numeric: tabular-nums; print-color-adjust: exact; -webkit-print-color-adjust: exact;
}
main { max-width: 1120px; margin: 0 auto; padding: 44px 28px 64px; }
header { margin-bottom: 30px; }
h1 { font-size: 30px; line-height: 1.2; letter-spacing: -0.02em; font-weight: 650; margin: 0 0 6px; }
h2 { font-size: 18px; letter-spacing: -0.01em; font-weight: 650; margin: 44px 0 14px; }
h3 { font-size: 14px; font-weight: 600; margin: 0; }
p { margin: 0; }
.soft, .notes { color: var(--soft); }
.lead { max-width: 72ch; margin: -8px 0 14px; color: var(--soft); }
.warning { background: var(--warn); border-radius: 8px; padding: 10px 14px; margin: 18px 0 0; }
.kpis { display: grid; grid-template-columns: repeat(4, 1fr); gap: 14px; margin: 0; }
.kpis div, .chart, .table { background: var(--card); border: 1px solid var(--line); border-radius: 12px; }
.kpis div { padding: 16px 18px 15px; display: flex; flex-direction: column; }
.kpis dt { color: var(--soft); font-size: 13.5px; }
.kpis dd { margin: 0; }
.kpis .figure { font-size: 30px; line-height: 1.3; letter-spacing: -0.02em; font-weight: 640; }
.kpis .more { color: var(--soft); font-size: 13px; line-height: 1.4; }
.more span { white-space: nowrap; }
.would .figure { color: var(--soft); }
.neg { color: var(--bad); }
.charts { display: grid; grid-template-columns: 1fr 1fr; gap: 14px; }
.charts > :first-child:nth-last-child(odd) { grid-column: 1 / -1; }
.chart { margin: 0; padding: 16px 18px 12px; min-width: 0; }
figcaption { display: flex; flex-wrap: wrap; justify-content: space-between; gap: 2px 16px; margin-bottom: 16px; }
.legend { display: flex; flex-wrap: wrap; gap: 0 14px; color: var(--soft); font-size: 12.5px; }
.legend i { display: inline-block; width: 9px; height: 9px; border-radius: 2px; margin-right: 6px; }
.plot { display: flex; height: 150px; }
.y { position: relative; flex: 0 0 54px; font-size: 11.5px; color: var(--soft); }
.y span { position: absolute; right: 9px; transform: translateY(-50%); white-space: nowrap; }
.plot svg { flex: 1; min-width: 0; height: 100%; display: block; overflow: visible; }
.x { position: relative; height: 20px; margin: 7px 0 0 54px; font-size: 11.5px; color: var(--soft); }
.x span { position: absolute; transform: translateX(-50%); white-space: nowrap; }
.x span:first-child:not(:last-child) { left: 0 !important; transform: none; }
.x span:last-child:not(:first-child) { left: auto !important; right: 0; transform: none; }
line { stroke-width: 1; vector-effect: non-scaling-stroke; }
.grid { stroke: var(--grid); }
.axis { stroke: var(--soft); stroke-opacity: .55; }
rect.done { fill: var(--done); } i.done { background: var(--done); }
rect.would { fill: var(--would); } i.would { background: var(--would); }
rect.bad { fill: var(--bad); } i.bad { background: var(--bad); }
.hint { fill: transparent; }
.hint:hover { fill: var(--ink); fill-opacity: .07; }
.table { overflow-x: auto; margin-bottom: 14px; }
table { border-collapse: collapse; width: 100%; font-size: 14px; }
caption { text-align: left; padding: 14px 18px 4px; font-weight: 600; white-space: nowrap; }
th, td { padding: 7px 12px; text-align: right; white-space: nowrap; }
th { font-weight: 500; font-size: 12.5px; color: var(--soft); }
td { border-top: 1px solid var(--grid); }
th:first-child, td:first-child { text-align: left; padding-left: 18px; }
th:last-child, td:last-child { padding-right: 18px; }
.name { text-align: left; max-width: 240px; overflow: hidden; text-overflow: ellipsis; }
th.name { color: var(--soft); }
td.rest { color: var(--soft); font-style: italic; }
.id { font: 12.5px ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; max-width: 150px; }
.bar { width: 120px; padding-left: 0; }
.bar i { display: block; height: 8px; border-radius: 2px; background: var(--done); width: var(--part); min-width: 1px; }
.tag { border-radius: 9px; padding: 1px 9px; font-size: 12.5px; background: var(--pale); }
.tag.would { background: none; box-shadow: inset 0 0 0 1px var(--line); color: var(--soft); }
.columns { columns: 2; column-gap: 14px; margin-bottom: -14px; }
.columns .table { break-inside: avoid; }
.notes { font-size: 13.5px; max-width: 82ch; margin-top: 44px; border-top: 1px solid var(--line); padding-top: 18px; }
.notes p + p { margin-top: 8px; }
@media screen and (max-width: 760px) {
  main { padding: 26px 16px 44px; }
  h1 { font-size: 25px; }
  .kpis { grid-template-columns: 1fr 1fr; gap: 10px; }
  .kpis div { padding: 12px 13px; }
  .kpis .figure { font-size: 23px; }
  .charts { grid-template-columns: minmax(0, 1fr); }
  .columns { columns: 1; }
  .wide { display: none; }
  .chart { padding: 14px 14px 10px; }
  .y { flex-basis: 48px; } .x { margin-left: 48px; }
  table { font-size: 13px; }
  caption { white-space: normal; }
  th, td { padding: 7px 8px; }
  th:first-child, td:first-child { padding-left: 14px; }
  td.first, th.first { position: sticky; left: 0; background: var(--card); max-width: 170px; }
  td.first:not(.name) { white-space: normal; }
  .id { max-width: 110px; }
}
@media print {
  @page { margin: 14mm 12mm; }
  body { background: none; font-size: 12px; }
  main { max-width: none; padding: 0; }
  h2 { margin-top: 24px; break-after: avoid; }
  .kpis div, .chart, tr { break-inside: avoid; }
  .table { overflow: visible; }
  table { font-size: 11px; }
  th, td { padding: 5px 6px; }
  th { font-size: 10.5px; }
  .wide { display: none; }
  h1 { font-size: 24px; }
  .kpis .figure { font-size: 22px; }
  .kpis div { padding: 10px 12px; }
  .kpis dt, .kpis .more { font-size: 11px; }
  .id, .name { max-width: 130px; }
  .id, .tag { font-size: 10px; padding: 0 6px; }
  td.id { padding: 5px 6px 5px 18px; }
  h2 { margin-top: 28px; }
  .plot { height: 110px; }
}
"""

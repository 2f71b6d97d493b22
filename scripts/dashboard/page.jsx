// The panels of the dashboard, drawn by Grafana's own components (@grafana/ui).
import React from 'react';
import { createRoot } from 'react-dom/client';
import {
  createTheme, dateTime, FieldColorModeId, FieldType, getDisplayProcessor, getFieldDisplayValues, standardTransformers,
  standardTransformersRegistry, ThemeContext, toDataFrame, transformDataFrame, VizOrientation,
} from '@grafana/data';
import {
  BarGauge, BarGaugeDisplayMode, BigValue, BigValueGraphMode, BigValueJustifyMode, GlobalStyles, PanelChrome, Table, TimeSeries,
} from '@grafana/ui';

const { dashboard, from, to, answers } = window.netfix;
const theme = createTheme({ colors: { mode: 'light' } });
const timeZone = 'utc';
const [WIDTH, ROW, GAP, TOP] = [1400, 36, 8, 56];

standardTransformersRegistry.setInit(() => [standardTransformers.mergeTransformer, standardTransformers.organizeFieldsTransformer]
  .map((one) => ({ id: one.id, name: one.name, transformation: one, editor: () => null })));

function nameOf(target, metric) {
  return (target.legendFormat || '').replace(/{{(\w+)}}/g, (_, label) => metric[label] ?? '');
}

// As Grafana's data source for Prometheus makes it: labels, and a value that has the query's letter where there are several.
function tableOf(panel, { refId }, series) {
  const labels = [...new Set(series.flatMap((one) => Object.keys(one.metric)))].filter((name) => name !== '__name__').sort();
  const column = (name) => ({ name, type: FieldType.string, values: series.map((one) => one.metric[name] ?? '') });
  const time = { name: 'Time', type: FieldType.time, values: series.map(() => to) };
  const value = {
    name: panel.targets.length > 1 ? `Value #${refId}` : 'Value', type: FieldType.number, values: series.map((one) => Number(one.value[1])),
  };
  return toDataFrame({ refId, fields: [time, ...labels.map(column), value] });
}

function seriesOf(target, { metric, value, values = [value] }) {
  const name = nameOf(target, metric);
  return toDataFrame({
    name,
    refId: target.refId,
    fields: [
      { name: 'Time', type: FieldType.time, values: values.map(([time]) => time * 1000) },
      { name: 'Value', type: FieldType.number, values: values.map(([, number]) => Number(number)), config: { displayNameFromDS: name } },
    ],
  });
}

// What Grafana adds to the settings of a panel.
function settings({ type, fieldConfig: { defaults, overrides } }) {
  return {
    overrides,
    defaults: {
      color: { mode: type === 'timeseries' ? FieldColorModeId.PaletteClassic : FieldColorModeId.Thresholds },
      thresholds: { mode: 'absolute', steps: [{ color: 'green', value: null }, { color: 'red', value: 80 }] },
      ...defaults,
    },
  };
}

// The settings of a field: those of the panel, and the overrides of its name.
function configOf(panel, field) {
  const { defaults, overrides } = settings(panel);
  const config = { ...defaults, ...field.config, custom: { ...defaults.custom, ...field.config.custom } };
  const name = field.config.displayName ?? field.config.displayNameFromDS ?? field.name;
  const properties = overrides.filter((one) => one.matcher.options === name).flatMap((one) => one.properties);
  for (const { id, value } of properties) {
    if (id.startsWith('custom.')) config.custom[id.slice(7)] = value;
    else config[id] = value;
  }
  return config;
}

function sort(frame, { displayName, desc }) {
  const key = frame.fields.find((field) => (field.config.displayName ?? field.name) === displayName)?.values;
  if (!key) return;
  const compare = (a, b) => (typeof a === 'number' ? a - b : String(a).localeCompare(String(b)));
  const order = key.map((_, at) => at).sort((a, b) => (desc ? -1 : 1) * compare(key[a], key[b]));
  for (const field of frame.fields) field.values = order.map((at) => field.values[at]);
}

function transformed(frames, transformations = []) {
  let result = frames;
  transformDataFrame(transformations, frames).subscribe((one) => { result = one; });
  return result;
}

// The frames of a panel, as Grafana makes them.
function framesOf(panel, of) {
  const made = panel.targets.flatMap((target, at) => {
    if (of[at].length === 0) return [];
    return target.format === 'table' ? [tableOf(panel, target, of[at])] : of[at].map((one) => seriesOf(target, one));
  });
  const frames = transformed(made, panel.transformations);
  frames.forEach((frame, seriesIndex) => {
    [...(panel.options.sortBy ?? [])].reverse().forEach((by) => sort(frame, by));
    frame.fields.forEach((field) => {
      if (field.type !== FieldType.time) field.config = configOf(panel, field);
      field.state = { seriesIndex };
      field.display = getDisplayProcessor({ field, theme, timeZone });
    });
  });
  return frames;
}

function valuesOf(panel, data) {
  return getFieldDisplayValues({
    fieldConfig: settings(panel), reduceOptions: panel.options.reduceOptions, replaceVariables: (text) => text, theme, data, timeZone,
  }).map((one) => one.display);
}

const kinds = {
  stat: (panel, frames, width, height) => (
    <BigValue value={{ ...valuesOf(panel, frames)[0], title: undefined }} width={width} height={height} theme={theme}
      colorMode={panel.options.colorMode} graphMode={BigValueGraphMode.None} justifyMode={BigValueJustifyMode.Center} />
  ),
  timeseries: (panel, frames, width, height) => (
    <TimeSeries frames={frames} width={width} height={height} timeZone={timeZone}
      timeRange={{ from: dateTime(from), to: dateTime(to), raw: { from, to } }} legend={panel.options.legend} />
  ),
  bargauge: (panel, frames, width, height) => {
    const values = valuesOf(panel, frames);
    const field = { ...settings(panel).defaults, max: Math.max(...values.map((one) => one.numeric)) };
    const gap = 6;
    const each = Math.min(height / values.length - gap, panel.options.maxVizHeight);
    return values.map((value, at) => (
      <div key={at} style={{ marginBottom: gap }}>
        <BarGauge theme={theme} width={width} height={each} orientation={VizOrientation.Horizontal} displayMode={BarGaugeDisplayMode.Basic}
          field={field} value={value} text={{ titleSize: 14, valueSize: 16 }} />
      </div>
    ));
  },
  table: (panel, frames, width, height) => <Table data={frames[0]} width={width} height={height} cellHeight={panel.options.cellHeight} />,
};

function Panel({ panel, of }) {
  const { x, y, w, h } = panel.gridPos;
  const frames = framesOf(panel, of);
  const content = (width, height) => (frames.length > 0 ? kinds[panel.type](panel, frames, width, height)
    : <div style={{ textAlign: 'center', paddingTop: height / 2 - 10, color: theme.colors.text.secondary }}>{panel.fieldConfig.defaults.noValue ?? 'No data'}</div>);
  return (
    <div style={{ position: 'absolute', left: (x * WIDTH) / 24 + GAP, top: y * ROW + TOP }}>
      <PanelChrome title={panel.title} width={(w * WIDTH) / 24 - GAP} height={h * ROW - GAP}>{content}</PanelChrome>
    </div>
  );
}

createRoot(document.getElementById('root')).render(
  <ThemeContext.Provider value={theme}>
    <GlobalStyles />
    <h4 style={{ padding: '14px 12px' }}>{dashboard.title}</h4>
    {dashboard.panels.map((panel, at) => <Panel key={at} panel={panel} of={answers[at]} />)}
  </ThemeContext.Provider>,
);

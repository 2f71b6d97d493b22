// The panels of the dashboard, drawn by Grafana's own components (@grafana/ui).
import React from 'react';
import { createRoot } from 'react-dom/client';
import {
  createTheme, dateTime, FieldColorModeId, FieldType, getDisplayProcessor, getFieldDisplayValues, ThemeContext, toDataFrame,
  VizOrientation,
} from '@grafana/data';
import {
  BarGauge, BarGaugeDisplayMode, BigValue, BigValueColorMode, BigValueGraphMode, GlobalStyles, PanelChrome, Table, TimeSeries,
} from '@grafana/ui';

const { dashboard, from, to, answers } = window.netfix;
const theme = createTheme({ colors: { mode: 'light' } });
const timeZone = 'utc';
const [WIDTH, ROW, GAP, TOP] = [1400, 36, 8, 56];

function nameOf(target, metric) {
  return (target.legendFormat || '').replace(/{{(\w+)}}/g, (_, label) => metric[label] ?? '');
}

function tableOf(series) {
  const labels = [...new Set(series.flatMap((one) => Object.keys(one.metric)))].sort();
  const columns = labels.map((name) => ({ name, type: FieldType.string, values: series.map((one) => one.metric[name] ?? '') }));
  const value = { name: 'Value', type: FieldType.number, values: series.map((one) => Number(one.value[1])) };
  return toDataFrame({ fields: [...columns, value] });
}

function seriesOf(target, { metric, value, values = [value] }) {
  const name = nameOf(target, metric);
  return toDataFrame({
    name,
    fields: [
      { name: 'Time', type: FieldType.time, values: values.map(([time]) => time * 1000) },
      { name: 'Value', type: FieldType.number, values: values.map(([, number]) => Number(number)), config: { displayNameFromDS: name } },
    ],
  });
}

// What Grafana adds to the settings of a panel.
function settings({ type, fieldConfig: { defaults, overrides } }) {
  const isGraph = type === 'timeseries';
  return {
    overrides,
    defaults: {
      color: { mode: isGraph ? FieldColorModeId.PaletteClassic : FieldColorModeId.Thresholds },
      thresholds: { mode: 'absolute', steps: [{ color: 'green', value: null }, { color: 'red', value: 80 }] },
      ...defaults,
      ...(isGraph && { custom: { drawStyle: 'line', lineWidth: 1, fillOpacity: 0, showPoints: 'never', axisPlacement: 'auto' } }),
    },
  };
}

// The frames of a panel, as Grafana's data source for Prometheus makes them.
function framesOf(panel, of) {
  const frames = panel.targets.flatMap((target, at) => {
    if (of[at].length === 0) return [];
    return target.format === 'table' ? [tableOf(of[at])] : of[at].map((one) => seriesOf(target, one));
  });
  frames.forEach((frame, seriesIndex) => frame.fields.forEach((field) => {
    if (field.type === FieldType.number) field.config = { ...settings(panel).defaults, ...field.config };
    field.state = { seriesIndex };
    field.display = getDisplayProcessor({ field, theme, timeZone });
  }));
  return frames;
}

function valuesOf(panel, data) {
  return getFieldDisplayValues({
    fieldConfig: settings(panel), reduceOptions: panel.options.reduceOptions, replaceVariables: (text) => text, theme, data, timeZone,
  });
}

const kinds = {
  stat: (panel, frames, width, height) => (
    <BigValue value={{ ...valuesOf(panel, frames)[0].display, title: undefined }} width={width} height={height} theme={theme}
      colorMode={BigValueColorMode.Background} graphMode={BigValueGraphMode.None} />
  ),
  timeseries: (panel, frames, width, height) => (
    <TimeSeries frames={frames} width={width} height={height} timeZone={timeZone}
      timeRange={{ from: dateTime(from), to: dateTime(to), raw: { from, to } }}
      legend={{ displayMode: 'list', placement: 'bottom', showLegend: true, calcs: [] }} />
  ),
  bargauge: (panel, frames, width, height) => {
    const values = valuesOf(panel, frames).map((one) => one.display);
    const field = { ...settings(panel).defaults, min: 0, max: Math.max(...values.map((one) => one.numeric)) };
    const gap = 6;
    return values.map((value, at) => (
      <div key={at} style={{ marginBottom: gap }}>
        <BarGauge theme={theme} width={width} height={height / values.length - gap} orientation={VizOrientation.Horizontal}
          displayMode={BarGaugeDisplayMode.Gradient} field={field} value={value} text={{ titleSize: 16, valueSize: 20 }} />
      </div>
    ));
  },
  table: (panel, frames, width, height) => <Table data={frames[0]} width={width} height={height} />,
};

function Panel({ panel, of }) {
  const { x, y, w, h } = panel.gridPos;
  const frames = framesOf(panel, of);
  const content = (width, height) => (frames.length > 0 ? kinds[panel.type](panel, frames, width, height)
    : <div style={{ textAlign: 'center', paddingTop: height / 2 - 10, color: theme.colors.text.secondary }}>No data</div>);
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

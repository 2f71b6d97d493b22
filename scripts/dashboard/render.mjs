// Writes a page of the dashboard, with the answers of a Prometheus to its queries.
//   node render.mjs DASHBOARD.json URL FROM TO OUT.html   times in seconds since 1970
import { build } from 'esbuild';
import { readFileSync, writeFileSync } from 'node:fs';

const [file, server, from, to, out] = process.argv.slice(2);
const dashboard = JSON.parse(readFileSync(file, 'utf8'));
const STEPS = 300;

async function get(path, parameters) {
  const answer = await (await fetch(`${server}/api/v1/${path}?${new URLSearchParams(parameters)}`)).json();
  if (answer.status !== 'success') throw new Error(`${parameters.query}: ${JSON.stringify(answer)}`);
  return answer.data.result;
}

function ask(target) {
  const query = target.expr.replaceAll('$instance', '.*');
  const step = Math.max(1, Math.round((to - from) / STEPS));
  return target.instant ? get('query', { query, time: to }) : get('query_range', { query, start: from, end: to, step });
}

const answers = await Promise.all(dashboard.panels.map((panel) => Promise.all(panel.targets.map(ask))));
const empty = dashboard.panels.filter((_, at) => answers[at].every((one) => one.length === 0)).map((panel) => panel.title);
if (empty.length > 0) throw new Error(`these panels are empty: ${empty.join(', ')}`);
const facts = JSON.stringify({ dashboard, from: from * 1000, to: to * 1000, answers });

// This package is CommonJS; esbuild takes the whole of it for its default export.
const scrollbars = {
  name: 'scrollbars',
  setup({ onResolve, onLoad }) {
    const namespace = 'scrollbars';
    onResolve({ filter: /^react-custom-scrollbars-2$/ }, (one) => (one.namespace === namespace ? undefined : { path: one.path, namespace }));
    onLoad({ filter: /.*/, namespace }, ({ path }) => ({ contents: `export { Scrollbars as default } from '${path}';`, resolveDir: '.' }));
  },
};
const bundle = await build({
  entryPoints: ['page.jsx'],
  bundle: true,
  format: 'iife',
  minify: true,
  write: false,
  outdir: 'out',
  plugins: [scrollbars],
  define: { 'process.env.NODE_ENV': '"production"', global: 'window' },
  loader: { '.svg': 'dataurl', '.woff2': 'dataurl', '.png': 'dataurl', '.ttf': 'dataurl' },
  banner: { js: `window.netfix=${facts};window.process={env:{}};` },
});
const [script, style] = ['.js', '.css'].map((end) => bundle.outputFiles.find(({ path }) => path.endsWith(end)).text);
writeFileSync(out, `<!doctype html><meta charset="utf-8"><style>${style}</style>
<body><div id="root"></div><script>${script.replaceAll('</script', '<\\/script')}</script>`);

//! The examples at the end of each help page.

pub(super) const NETFIX: &str = "\
EXAMPLES
  netfix upgrade -- sh upgrade.sh   a driver upgrade, with snapshot, pause and restore around it
  netfix snapshot; netfix check     from cron
  netfix restore                    after an unplanned loss
  netfix verify                     do the host and every pod reach their gateways?

EXIT CODES
  0  done
  1  failed
  2  wrong usage
  3  differences found (diff, plan --exit-code)
  4  refused before anything was changed (not root, lock held, no checkpoint of this boot)
  5  incomplete: some pods, or parts of one, failed; stderr names each
  `netfix check` has the exit codes of monitoring plugins: see `netfix help check`.

SETTINGS
  /etc/netfix/config.toml sets what suits the node: runtimes, timeouts, probes, kubelet's unit. An option of the
  same name sets it for one run, such as `--probe-rate 15`. docs/reference/configuration.md lists the settings.

Results go to stdout, messages to stderr. `-o json` prints one document: docs/reference/json.md describes it,
`netfix explain` the problem codes. Where journald runs, steps and problems are in the journal:
`journalctl -t netfix`, with the fields POD=, NETNS=, CODE=.";

pub(super) const SNAPSHOT: &str = "\
EXAMPLES
  netfix snapshot               save all pods
  netfix snapshot 'shop/*'      save the pods of one namespace
  netfix snapshot --keep 30     keep 30 generations
  netfix snapshot --accept shop/web-0   give up what this pod has lost
  netfix snapshot --every 1h    in a container";

pub(super) const LIST: &str = "\
EXAMPLES
  netfix list                   the checkpoint of every pod
  netfix list -o wide           with all columns
  netfix list --generations     the saved generations and their numbers";

pub(super) const SHOW: &str = "\
EXAMPLES
  netfix show web-0
  netfix show shop/web-0 --generation 7";

pub(super) const DIFF: &str = "\
EXAMPLES
  netfix diff                   every pod
  netfix diff shop/web-0        one pod";

pub(super) const PLAN: &str = "\
EXAMPLES
  netfix plan                   the steps of `netfix restore`
  netfix plan 'shop/*' -v       all steps of every pod of one namespace
  netfix plan --exit-code -q    for scripts: exit code 3 if anything is missing";

pub(super) const RESTORE: &str = "\
EXAMPLES
  netfix restore                restore all pods; if a NIC is missing, wait up to 60 s for it
  netfix restore --nic-wait 5m  wait longer, and for its carrier
  netfix restore --watch 30s    restore what is lost again within 30 s after the restore
  netfix restore shop/web-0 -v  restore one pod and print each step
  netfix restore --conflict-probe off   do not probe whether another machine has an address";

pub(super) const VERIFY: &str = "\
EXAMPLES
  netfix verify                 the host and every pod
  netfix verify 'shop/*' -v     one namespace, with the round trip of every gateway
  netfix verify --ping 192.0.2.1 --tcp db.shop.svc:5432   also what the pods need, from inside each";

pub(super) const CHECK: &str = "\
EXAMPLES
  netfix check                  for people
  netfix check --nagios         for a monitoring plugin
  netfix check --merge *.json   the answers of many nodes
  netfix check -q --textfile /var/lib/prometheus/node-exporter/netfix.prom";

pub(super) const PAUSE: &str = "\
EXAMPLES
  netfix pause                  until `netfix resume`, at most 10 minutes
  netfix pause --deadline 30m";

pub(super) const RESUME: &str = "\
EXAMPLES
  netfix restore && netfix resume";

pub(super) const UPGRADE: &str = "\
EXAMPLES
  netfix upgrade --dry-run -- sh upgrade.sh   show what would happen, without changing anything
  netfix upgrade -- sh upgrade.sh             run the window
  netfix upgrade --rollback 'sh old-driver.sh' -- sh upgrade.sh
  netfix upgrade --yes --detach --driver-version i40e=2.28.7 -- sh upgrade.sh   from automation; then: netfix wait";

pub(super) const STATUS: &str = "\
EXAMPLES
  netfix status
  netfix status --follow        the log of the open window";

pub(super) const WAIT: &str = "\
EXAMPLES
  netfix wait                                    until the open window is closed
  netfix wait 20261121T031500Z --timeout 20m     this window; exit code 124 after 20 minutes";

pub(super) const GUARD: &str = "\
EXAMPLES
  systemctl enable --now netfix-guard     restore by itself after every unplanned loss
  netfix guard --once                     look now, and restore what is lost
  journalctl -t netfix -g guard           what it decided";

pub(super) const HOST: &str = "\
EXAMPLES
  netfix host -- netfix status
  netfix host -- sh -c 'id=$(netfix upgrade --yes --detach -- sh upgrade.sh) && netfix wait $id'";

pub(super) const REPORT: &str = "\
EXAMPLES
  netfix report                        the newest window
  netfix report --list                 all windows
  netfix report --html ticket.html     the newest window as a page for a change ticket
  netfix report --merge *.json --html fleet.html    the reports of many nodes";

pub(super) const IMPORT: &str = "\
EXAMPLES
  netfix import /home/work/cni-plugins/checkpoints";

pub(super) const PRUNE: &str = "\
EXAMPLES
  netfix prune --keep 3";

pub(super) const EXPLAIN: &str = "\
EXAMPLES
  netfix explain no-carrier     the meaning of one code, and what to do
  netfix explain                all codes";

pub(super) const SCHEMA: &str = "\
EXAMPLES
  netfix schema > netfix-v1.json                  of every document
  netfix check -o json > check.json; netfix schema check > schema.json
  check-jsonschema --schemafile schema.json check.json";

pub(super) const COMPLETIONS: &str = "\
EXAMPLES
  netfix completions bash > /etc/bash_completion.d/netfix
  netfix completions zsh > /usr/local/share/zsh/site-functions/_netfix
  netfix completions fish > /etc/fish/completions/netfix.fish";

pub(super) const MAN: &str = "\
EXAMPLES
  netfix man | man -l -                netfix(8)
  netfix man restore | man -l -        one command
  netfix man --dir /usr/local/share/man/man8";

"""The commands of which "always" covers every use, and their options that write no file and run no program.

The table is a closed world: a command that is not in it is covered by its exact line only, and an option that is not in
the row of its command is asked about. So a row needs only what people use, and a forgotten option costs a question.

A row has the program with its subcommands (`*` is any word, such as the name of a script) and its options, without
dashes. `n:` takes a value, `C?` can have one attached, `#` stands for `-20`, and `*` for every option: such a program
has none that writes or runs anything. `name=value` allows only that value.
"""

from __future__ import annotations

from typing import Final

_DIFF: Final = (
    " p u patch s no-patch U: unified: stat shortstat numstat dirstat summary name-only name-status z color no-color "
    "word-diff word-diff-regex: color-words color-moved w b ignore-all-space ignore-space-change ignore-space-at-eol "
    "ignore-blank-lines M? C? D find-renames find-copies no-renames diff-filter: S: G: pickaxe-all pickaxe-regex raw "
    "minimal patience histogram diff-algorithm: R a text exit-code quiet full-index abbrev no-ext-diff no-textconv "
    "relative inter-hunk-context: W function-context cached staged merge-base cc c m compact-summary check no-prefix "
)
_LOG: Final = _DIFF + (
    " # n: max-count: skip: since: until: after: before: author: committer: grep: i regexp-ignore-case E F P "
    "all-match invert-grep oneline pretty format: graph decorate all branches tags remotes merges no-merges "
    "first-parent follow L: reverse date-order author-date-order topo-order date: relative-date abbrev-commit "
    "no-abbrev-commit left-right cherry-pick cherry-mark cherry boundary g walk-reflogs simplify-by-decoration "
    "full-history ancestry-path source use-mailmap notes no-notes parents children left-only right-only exclude: "
    "count "
)
_CARGO: Final = (
    " r release p: package: workspace all exclude: all-features features: F: no-default-features lib bins bin: tests "
    "test: examples example: benches bench: all-targets v vv verbose q quiet locked offline frozen j: jobs: "
    "keep-going color: message-format: profile: "
)
_KUBECTL: Final = (
    " n: namespace: A all-namespaces l: selector: o: output: w watch show-labels field-selector: sort-by: no-headers "
    "context: "
)
_GH: Final = " json: jq: q: template: t: L: limit: s: state: author: assignee: a: label: l: comments c R: repo: "
_TERRAFORM: Final = " no-color input: lock: refresh: target: var: compact-warnings detailed-exitcode json "

_GIT: Final = {
    "git add": "A all u update n dry-run v verbose N intent-to-add",
    "git blame": "L: l t w C? M? e show-email s c n show-number f show-name p porcelain line-porcelain root date: "
    "since:",
    "git branch": "a all r remotes v vv verbose l list show-current merged no-merged contains no-contains sort: "
    "format: color no-color column i ignore-case q quiet points-at:",
    "git cat-file": "p t s e",
    "git check-attr": "*",
    "git check-ignore": "*",
    "git checkout": "b: q quiet t track no-track detach",
    "git cherry-pick": "x n no-commit abort continue skip",
    "git clone": "depth: b: branch: single-branch q quiet bare no-checkout",
    "git commit": "m: message: a all v verbose q quiet s signoff amend no-edit allow-empty date: author:",
    "git config": "get: get-all: get-regexp: l list show-origin show-scope name-only z local global system type:",
    "git config get": "all show-origin show-scope name-only z local global system type:",
    "git config list": "show-origin show-scope name-only z local global system type:",
    "git count-objects": "*",
    "git describe": "*",
    "git diff": _DIFF,
    "git fetch": "all p prune t tags n no-tags q quiet v verbose depth: unshallow j: jobs: dry-run progress "
    "no-progress",
    "git for-each-ref": "format: sort: count: points-at: merged contains no-merged",
    "git grep": "n line-number i ignore-case w word-regexp v invert-match l files-with-matches L files-without-match "
    "c count E extended-regexp F fixed-strings P perl-regexp G H h o only-matching e: A: B: C: and or not untracked "
    "cached p show-function W function-context q quiet heading break color max-depth: a I name-only z r recursive "
    "column m:",
    "git log": _LOG,
    "git ls-files": "*",
    "git ls-tree": "*",
    "git merge": "ff-only no-ff ff no-edit m: squash abort continue q quiet stat no-stat",
    "git merge-base": "*",
    "git mv": "v verbose n dry-run",
    "git pull": "rebase r ff-only no-rebase no-edit q quiet v verbose p prune t tags autostash",
    "git push": "u set-upstream q quiet v verbose n dry-run tags follow-tags porcelain progress no-progress",
    "git rebase": "abort continue skip onto: q quiet autostash",
    "git reflog": _LOG,
    "git reflog show": _LOG,
    "git remote": "v verbose",
    "git remote get-url": "all push",
    "git remote show": "n",
    "git reset": "q quiet soft mixed",
    "git restore": "S staged W worktree s: source: q quiet",
    "git rev-list": _LOG + "objects",
    "git rev-parse": "*",
    "git shortlog": "n s e c numbered summary email no-merges since: until: all group: w?",
    "git show": _LOG,
    "git show-ref": "*",
    "git stash": "u include-untracked k keep-index q quiet",
    "git stash apply": "index q quiet",
    "git stash list": _LOG,
    "git stash pop": "index q quiet",
    "git stash push": "u include-untracked k keep-index q quiet m: message:",
    "git stash show": _DIFF,
    "git status": "s short b branch porcelain long v verbose u? untracked-files ignored ignore-submodules z "
    "show-stash ahead-behind no-ahead-behind no-renames find-renames column no-column",
    "git switch": "c: create: q quiet d detach t track",
    "git tag": "l list n? sort: contains merged points-at: format: i a m: message: column",
    "git version": "*",
    "git worktree list": "porcelain v verbose",
}
_SHELL_TOOLS: Final = {
    # No option of these writes a file or runs a program, in the GNU, BSD and busybox versions.
    **dict.fromkeys(
        "[ arch basename cal cat cksum cmp column comm cut df diff dirname du echo egrep exa expand expr eza factor "  # noqa: SIM905
        "false fgrep fmt fold free grep groups head hexdump id la ll locale ls md5 md5sum mkdir nl nproc od pgrep "
        "pidof printenv printf ps pwd readlink realpath rev seq sha1sum sha256sum sha512sum shasum sleep stat "
        "strings sum tac tail test touch tr true tty type uname uptime vmstat wc whereis which who whoami yes".split(),
        "*",
    ),
    "base64": "d decode D w: wrap: i ignore-garbage",
    "bat": "n p plain number A show-all r: line-range: l: language: H: highlight-line: style: color: paging: theme: "
    "wrap: tabs: d diff file-name:",
    "cloc": "by-file by-file-by-lang json csv md quiet q exclude-dir: include-lang: exclude-lang: include-ext: "
    "exclude-ext:",
    "date": "u utc I? R iso-8601 rfc-3339: rfc-email d: date: r: reference:",
    "file": "b i L h k p N brief mime mime-type mime-encoding dereference",
    "gofmt": "l d s e",
    "hostname": "f s i I d A fqdn short",
    "jq": "r raw-output c compact-output s slurp n null-input e exit-status S sort-keys a ascii-output j join-output "
    "C color-output M monochrome-output R raw-input tab indent: arg: argjson: args jsonargs stream seq",
    "lsof": "i? n P p: t u:",
    "rg": "# n N i S s w v l c o F U e: A: B: C: g: t: T: m: M: j: u x L H I q P 0 p a b r: max-depth: glob: iglob: "
    "type: type-not: files hidden no-ignore no-ignore-vcs no-heading heading line-number no-line-number ignore-case "
    "smart-case word-regexp fixed-strings count count-matches files-with-matches files-without-match context: "
    "after-context: before-context: only-matching invert-match multiline pcre2 color: json stats sort: sortr: "
    "max-count: max-columns: trim vimgrep column no-filename with-filename replace: follow type-list regexp: text "
    "null quiet no-messages passthru",
    "shfmt": "l d i: bn ci sr kp fn ln: p s f",
    "sort": "n numeric-sort r reverse u unique k: key: t: field-separator: f h V R b d g M s c C z m stable check "
    "ignore-case ignore-leading-blanks human-numeric-sort version-sort zero-terminated general-numeric-sort "
    "month-sort random-sort debug parallel: S: buffer-size:",
    "tokei": "f files e: exclude: t: type: s: sort: C compact",
    "tree": "a d f L: l x P: I: p s h u g D t r n C J X i N Q F prune dirsfirst filelimit: noreport gitignore "
    "matchdirs ignore-case du si sort charset: timefmt:",
    "uniq": "c count d repeated u unique i ignore-case f: s: w: z",
    "xxd": "p ps u b c: g: l: s: e i E a d",
    "zcat": "f",
}
_CHECKERS: Final = {
    "actionlint": "color oneline verbose no-color",
    "black": "check diff q quiet v verbose l: line-length: t: target-version: color S skip-string-normalization "
    "exclude: include: fast safe preview",
    "eslint": "ext: max-warnings: quiet no-color color no-inline-config report-unused-disable-directives "
    "ignore-pattern: rule:",
    "flake8": "max-line-length: ignore: extend-ignore: select: extend-select: max-complexity: count statistics "
    "show-source q v exclude:",
    "hadolint": "f: format: ignore: no-color t: failure-threshold: V verbose no-fail",
    "isort": "c check check-only diff q profile: l: line-length: sl",
    "markdownlint": "q quiet i: ignore: s d dot",
    "mypy": "strict no-incremental show-error-codes pretty v verbose ignore-missing-imports follow-imports: "
    "no-error-summary p: package: m: module: exclude: warn-unused-ignores show-column-numbers show-error-context "
    "no-color-output python-version: platform: namespace-packages explicit-package-bases check-untyped-defs "
    "disallow-untyped-defs",
    "prettier": "c check l list-different log-level: no-color tab-width: print-width: single-quote no-semi "
    "trailing-comma:",
    "pylint": "d: disable: e: enable: E errors-only s: score: j: jobs: ignore: max-line-length:",
    "pyright": "warnings stats verbose outputjson level: pythonversion: pythonplatform: w watch",
    "pytest": "q quiet v verbose vv x exitfirst k: m: s l showlocals r: lf last-failed ff failed-first nf sw "
    "stepwise maxfail: tb: durations: durations-min: co collect-only n: numprocesses: dist: color: no-header "
    "no-summary timeout: cov cov-branch cov-fail-under: no-cov cov-report=term cov-report=term-missing "
    "disable-warnings strict-markers strict-config runxfail markers fixtures reruns: setup-show capture: deselect: "
    "ignore: ignore-glob: full-trace",
    "rubocop": "D display-cop-names S E P parallel no-color color L list-target-files only: except: lint l "
    "fail-level: force-exclusion",
    "ruff check": "select: ignore: extend-select: extend-ignore: q quiet v verbose s silent statistics no-cache diff "
    "show-files show-fixes output-format: preview line-length: target-version: exit-zero e w watch no-fix exclude: n",
    "ruff format": "check diff q quiet v verbose line-length: no-cache n exclude: preview target-version:",
    "ruff rule": "all",
    "rustfmt": "check edition: l files-with-diff color: q quiet v verbose",
    "shellcheck": "s: shell: S: severity: e: exclude: i: include: f: format: C? color o: enable: norc W:",
    "stylelint": "quiet q max-warnings: color no-color allow-empty-input",
    "tsc": "noEmit pretty strict skipLibCheck listFiles t: target: m: module: jsx: lib: esModuleInterop v version "
    "showConfig w watch",
    "yamllint": "s strict f: format: no-warnings list-files",
}
_BUILD_TOOLS: Final = {
    "bundle list": "name-only paths",
    "bundle outdated": "",
    **dict.fromkeys(("cargo bench", "cargo build", "cargo check"), _CARGO),
    "cargo clippy": _CARGO + "W: A: D: no-deps",
    "cargo doc": _CARGO + "no-deps document-private-items",
    "cargo fmt": "check all v q verbose quiet",
    "cargo metadata": "format-version: no-deps offline locked",
    "cargo nextest run": _CARGO + "E: no-capture retries:",
    "cargo test": _CARGO + "no-run no-fail-fast doc nocapture show-output exact ignored include-ignored "
    "test-threads: skip: list",
    "cargo tree": "i: invert: d duplicates e: edges: depth: p: package:",
    "dotnet build": "c: configuration: no-restore nologo v: verbosity: f: framework:",
    "dotnet test": "c: configuration: no-restore no-build nologo v: verbosity: f: framework: filter: list-tests",
    "go build": "v race tags: trimpath p: n x",
    "go doc": "all u src short",
    "go env": "json",
    "go fmt": "n x",
    "go list": "m json deps f: u test e tags:",
    "go mod graph": "",
    "go mod tidy": "v",
    "go mod verify": "",
    "go mod why": "m",
    "go test": "v run: skip: count: race short timeout: cover covermode: coverpkg: failfast bench: benchtime: "
    "benchmem cpu: parallel: p: json tags: list: shuffle:",
    "go version": "m v",
    "go vet": "v tags: json",
    **dict.fromkeys(("npm test", "npm run *"), "s silent if-present"),
    **dict.fromkeys(("pnpm test", "pnpm run *", "yarn test", "yarn run *"), "s silent"),
    "npm audit": "json production omit: audit-level:",
    **dict.fromkeys(("npm ls", "npm list", "npm explain", "npm why"), "depth: a all json long parseable g global"),
    "npm outdated": "json long g global",
    "npm view": "json",
    "pip check": "",
    "pip freeze": "all",
    "pip list": "o outdated format: u uptodate not-required user",
    "pip show": "f files v",
    "poetry show": "tree t latest l outdated o",
    "pre-commit run": "a all-files files: hook-stage: v verbose color:",
    "uv pip list": "outdated format:",
    "uv pip show": "",
}
_CLIENTS: Final = {
    "apt list": "installed upgradable a all-versions",
    "apt search": "",
    "apt show": "a all-versions",
    "aws s3 ls": "recursive human-readable summarize page-size: region: profile: output:",
    "aws sts get-caller-identity": "profile: output: region:",
    "docker compose build": "no-cache pull q quiet",
    "docker compose down": "remove-orphans t: timeout:",
    "docker compose images": "q quiet format:",
    "docker compose logs": "f follow n: tail: t timestamps since: until: no-color",
    "docker compose ls": "a all q quiet format:",
    "docker compose ps": "a all q quiet format: services status:",
    "docker compose pull": "q quiet",
    "docker compose restart": "t: timeout: no-deps",
    "docker compose start": "",
    "docker compose stop": "t: timeout:",
    "docker compose top": "",
    "docker compose up": "d detach no-build no-deps wait quiet-pull remove-orphans force-recreate no-recreate "
    "abort-on-container-exit",
    "docker image ls": "a all q quiet f: filter: format: no-trunc",
    "docker images": "a all q quiet f: filter: format: no-trunc",
    "docker info": "f: format:",
    "docker inspect": "f: format: s size",
    "docker logs": "f follow n: tail: t timestamps since: until:",
    "docker network ls": "q quiet f: filter: format: no-trunc",
    "docker ps": "a all q quiet f: filter: format: n: l latest s size no-trunc",
    "docker container ls": "a all q quiet f: filter: format: n: l latest s size no-trunc",
    "docker stats": "no-stream a all format:",
    "docker system df": "v verbose format:",
    "docker top": "",
    "docker version": "f: format:",
    "docker volume ls": "q quiet f: filter: format:",
    **dict.fromkeys(
        (
            "gh issue list",
            "gh issue status",
            "gh issue view",
            "gh pr checks",
            "gh pr diff",
            "gh pr list",
            "gh pr status",
        ),
        _GH,
    ),
    **dict.fromkeys(("gh pr view", "gh release list", "gh release view", "gh repo view", "gh run list"), _GH),
    "gh run view": _GH + "log log-failed v verbose job:",
    **dict.fromkeys(("gh run watch", "gh workflow list", "gh workflow view"), _GH),
    **dict.fromkeys(("glab ci status", "glab issue list", "glab issue view", "glab mr list", "glab mr view"), ""),
    "helm history": "n: namespace: o: output:",
    "helm lint": "strict set: f: values:",
    "helm list": "A all-namespaces n: namespace: o: output: a all q short",
    "helm status": "n: namespace: o: output:",
    "helm template": "set: f: values: n: namespace: s: show-only: version:",
    **dict.fromkeys(("kubectl describe *", "kubectl explain", "kubectl get *", "kubectl top *"), _KUBECTL),
    "kubectl logs": "f follow tail: n: namespace: c: container: since: p previous timestamps all-containers l: "
    "selector:",
    "kubectl rollout status": "n: namespace:",
    "kubectl version": "o: output: client",
    "systemctl status": "no-pager l full n: lines: user",
    "terraform fmt": "check diff recursive",
    "terraform plan": _TERRAFORM,
    "terraform show": _TERRAFORM,
    "terraform state list": "",
    "terraform validate": _TERRAFORM,
    "terraform version": "json",
    "hg diff": "r: c: stat w b U: git g",
    "hg log": "l: limit: r: rev: p patch G graph v verbose q quiet b: branch: d: date: k: keyword: u: user: stat f M",
    "hg status": "m a r d u n A modified added removed deleted unknown",
    "jj diff": "r: revisions: s summary stat git from: to:",
    "jj log": "r: revisions: n: limit: p patch s summary stat git no-graph reversed",
    "jj show": "s summary stat git",
    "jj status": "",
    "svn log": "l: limit: r: v verbose q quiet stop-on-copy",
    "svn status": "u v q",
}
PREFIXES: Final = {**_GIT, **_SHELL_TOOLS, **_CHECKERS, **_BUILD_TOOLS, **_CLIENTS}

MAX_OPERANDS: Final = {
    # A second file is written, or other operands have another effect.
    **dict.fromkeys(("base64", "git config", "git stash apply", "git stash pop", "uniq", "xxd"), 1),
    **dict.fromkeys(("git reflog", "git remote", "git stash", "hostname", "npm audit"), 0),
    # They are arguments of the script.
    **dict.fromkeys(("npm test", "npm run *", "pnpm test", "pnpm run *", "yarn test", "yarn run *"), 0),
}
"""The most arguments that are not options. Of the commands that are not named here there can be any number."""

SAME_OPTIONS: Final = {"podman": "docker", "nerdctl": "docker", "pip3": "pip", "oc": "kubectl", "tofu": "terraform"}

READ_ONLY: Final = {
    # "always" covers only their exact line, since their other options and arguments run programs.
    "cd": "*",
    "find": "name: iname: path: ipath: wholename: regex: iregex: type: maxdepth: mindepth: size: mtime: mmin: newer: "
    "newermt: empty not o or a and prune print print0 perm: user: group: readable writable executable depth d xdev "
    "mount follow ls quit daystart regextype: true false links: L H P E X s",
    "less": "N S R F X i n M E e",
    "pushd": "*",
}

_OPENS_EDITOR: Final = {f"git {name}" for name in ("cherry-pick", "commit", "merge", "pull", "rebase", "tag")}
"""An editor takes commands from its input."""

TAKES_DATA: Final = frozenset({*_GIT, *_SHELL_TOOLS, *_CHECKERS, "less"} - _OPENS_EDITOR - {"git push", "pytest"})
"""With harmless options, these read their standard input as data. The others could run it, as the script of
`npm run x` does."""

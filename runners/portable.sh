#!/usr/bin/env bash
# portable.sh PROFILE JAR [SERVER OPTIONS …] -- COMMAND …: what flink.sh and spark.sh have in common.
#
# JOB_PORT (8099), ARTIFACT_PORT (8098) and POOL_PORT (50000) may be set. Logs of server and pool: LOG_DIR, by
# default a new directory under /tmp that is named on failure. Exit code: the command's, or 2 without a jar.
set -euo pipefail

profile=$1 jar=$2
shift 2
server_options=()
while [ "$#" -gt 0 ] && [ "$1" != "--" ]; do
  server_options+=("$1")
  shift
done
shift || true

fail() {
  echo "error: $*" >&2
  exit 2
}
variable="$(echo "$profile" | tr '[:lower:]' '[:upper:]')_JOB_SERVER_JAR"
[ -n "$jar" ] || fail "$variable is not set: the path of Beam's job server jar for $profile"
[ -f "$jar" ] || fail "$variable: no such file: $jar"
command -v java > /dev/null || fail "java is not on the PATH; Beam's job server needs Java 11 or 17"
[ "$#" -gt 0 ] || fail "no command given: runners/$profile.sh python -m beam_jobs.split …"

job_port=${JOB_PORT:-8099} artifact_port=${ARTIFACT_PORT:-8098} pool_port=${POOL_PORT:-50000}
listens() { (exec 3<> "/dev/tcp/localhost/$1") 2> /dev/null; }
for port in "$job_port" "$artifact_port" "$pool_port"; do # a job must not go to somebody else's server
  ! listens "$port" || fail "port $port is taken; set JOB_PORT, ARTIFACT_PORT and POOL_PORT to free ones"
done
logs=${LOG_DIR:-$(mktemp -d "/tmp/ragline-$profile-XXXXXX")}
mkdir -p "$logs"
children=()
cleanup() {
  for child in "${children[@]}"; do
    kill -TERM "-$child" 2> /dev/null || true # its whole process group
  done
  for child in "${children[@]}"; do # the next run finds the ports free
    for _ in $(seq 50); do
      kill -0 "-$child" 2> /dev/null || break
      sleep 0.1
    done
    kill -KILL "-$child" 2> /dev/null || true
  done
}
trap cleanup EXIT

wait_for() { # PORT NAME PID
  for _ in $(seq 300); do
    if listens "$1"; then return 0; fi
    kill -0 "$3" 2> /dev/null || break
    sleep 0.2
  done
  fail "$2 does not listen on port $1; see $logs/$2.log"
}

set -m # background commands get process groups of their own
java -jar "$jar" "${server_options[@]}" --job-port "$job_port" --artifact-port "$artifact_port" \
  --expansion-port 0 --artifacts-dir "$logs/artifacts" > "$logs/job-server.log" 2>&1 &
children+=("$!")
python -m apache_beam.runners.worker.worker_pool_main --service_port "$pool_port" \
  > "$logs/worker-pool.log" 2>&1 &
children+=("$!")
set +m
wait_for "$job_port" job-server "${children[0]}"
wait_for "$pool_port" worker-pool "${children[1]}"

code=0
"$@" --profile "$profile" --job_endpoint "localhost:$job_port" \
  --environment_type EXTERNAL --environment_config "localhost:$pool_port" || code=$?
[ "$code" -eq 0 ] || echo "logs of the job server and the worker pool: $logs" >&2
exit "$code"

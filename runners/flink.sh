#!/usr/bin/env bash
# Start Flink's job server for Beam and a worker pool, run a command with --profile flink, end both.
#
#   FLINK_JOB_SERVER_JAR=beam-runners-flink-1.19-job-server-2.77.0.jar \
#     runners/flink.sh python -m beam_jobs.split --input 'dump/*.xml.bz2' --output passages
#
# The jar comes from Maven Central (org.apache.beam:beam-runners-flink-1.19-job-server:2.77.0).
# FLINK_MASTER: HOST:PORT of a cluster's JobManager; by default [local], a Flink inside the job server.
set -euo pipefail
exec "$(dirname "$0")/portable.sh" flink "${FLINK_JOB_SERVER_JAR:-}" \
  --flink-master "${FLINK_MASTER:-[local]}" -- "$@"

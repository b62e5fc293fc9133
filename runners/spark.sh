#!/usr/bin/env bash
# Start Spark's job server for Beam and a worker pool, run a command with --profile spark, end both.
#
#   SPARK_JOB_SERVER_JAR=beam-runners-spark-3-job-server-2.77.0.jar \
#     runners/spark.sh python -m beam_jobs.split --input 'dump/*.xml.bz2' --output passages
#
# The jar comes from Maven Central (org.apache.beam:beam-runners-spark-3-job-server:2.77.0).
# SPARK_MASTER: spark://HOST:PORT of a cluster; by default local[2], a Spark inside the job server.
set -euo pipefail
exec "$(dirname "$0")/portable.sh" spark "${SPARK_JOB_SERVER_JAR:-}" \
  --spark-master-url "${SPARK_MASTER:-local[2]}" -- "$@"

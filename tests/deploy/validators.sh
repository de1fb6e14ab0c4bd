#!/bin/sh
# Builds the validators of deploy/ into .venv/bin, and makes the schemas of kubeconform in build/schemas. Go leaves a
# program of the same version as it is, and verifies each module by its checksum database.
#
#   sh tests/deploy/validators.sh          what `make check-deploy` runs
#   sh tests/deploy/validators.sh --long   also an API server of Kubernetes with its etcd, a server of S3, and a KDC
set -eu

HELM_UNITTEST=github.com/helm-unittest/helm-unittest@v1.1.2 # names the release of helm
ALERTMANAGER=github.com/prometheus/alertmanager@v0.28.1 # the oldest line with the receiver of Teams
KUBECONFORM=github.com/yannh/kubeconform@v0.8.0
KUBE_SCORE=github.com/zegl/kube-score@v1.20.0
PROMETHEUS_OPERATOR=github.com/prometheus-operator/prometheus-operator@v0.85.0
SPARK_OPERATOR=github.com/kubeflow/spark-operator/v2@v2.4.0
VERSITYGW=github.com/versity/versitygw@v1.8.0
KUBERNETES=k8s.io/kubernetes@v1.36.3 # names the release of etcd
LIBRARIES=v0.36.3                    # of the same release of Kubernetes

cd "$(dirname -- "$0")/../.."
root=$PWD
programs=$root/.venv/bin
export GOFLAGS=-buildvcs=false GOWORK=off

command -v go >/dev/null || { echo "validators: Go is not in PATH: install 1.26 or newer" >&2 && exit 1; }
directory_of() { go mod download "$1" && printf '%s/%s' "$(go env GOMODCACHE)" "$1"; }

# build MODULE PACKAGE...: with the releases that the module's go.mod names, in a copy that Go may complete.
build() (
    directory=$(directory_of "$1")
    module=$root/build/$(basename "${1%@*}")
    shift
    sed "s#=> ./staging/src/\(.*\)#=> \1 $LIBRARIES#" "$directory/go.mod" >"$module.mod" # no module contains those paths
    cat "$directory/go.sum" >"$module.sum"
    cd "$directory"
    go build -ldflags='-s -w' -mod=mod -modfile="$module.mod" -o "$programs/" "$@"
)

rm -rf build/schemas
mkdir -p build/schemas
build "$HELM_UNITTEST" ./cmd/helm-unittest helm.sh/helm/v3/cmd/helm
(
    programs=$root/build/alertmanager
    build "$ALERTMANAGER" ./cmd/amtool
)
mv build/alertmanager/amtool "$programs/amtool-of-teams" # amtool is Debian's, whose Alertmanager the tests run
build "$KUBECONFORM" ./cmd/kubeconform
build "$KUBE_SCORE" ./cmd/kube-score

# The schemas of kubernetes-validate name each other by addresses. kubeconform looks for files.
of_kubernetes=$("$programs/python" -c 'import kubernetes_validate; print(kubernetes_validate.__path__[0])')
for version in 1.25.0 1.30.0 1.37.0; do # the chart's oldest, and the newest that kubernetes-validate has
    cp -R "$of_kubernetes/kubernetes-json-schema/v$version-local-strict" "build/schemas/v$version"
done
find build/schemas -name '*.json' -exec sed -i 's#/api/\(_definitions.json\)#\1#; s/"$id"/"$comment"/' {} +

# The operators' kinds, as manifests for an API server, and as schemas for kubeconform.
prometheus=$(directory_of "$PROMETHEUS_OPERATOR")/example/prometheus-operator-crd/monitoring.coreos.com
cp "${prometheus}_podmonitors.yaml" "${prometheus}_prometheusrules.yaml" "${prometheus}_servicemonitors.yaml" \
    "$(directory_of "$SPARK_OPERATOR")/config/crd/bases/sparkoperator.k8s.io_sparkapplications.yaml" build/schemas
converter=$(directory_of "$KUBECONFORM")/scripts/openapi2jsonschema.py
(cd build/schemas && FILENAME_FORMAT='{kind}-{group}-{version}' "$programs/python" "$converter" ./*.yaml >/dev/null)

if [ "${1-}" = --long ]; then
    build "$VERSITYGW" ./cmd/versitygw
    build "$KUBERNETES" ./cmd/kube-apiserver
    build "$KUBERNETES" go.etcd.io/etcd/server/v3
    mv "$programs/server" "$programs/etcd"
    if ! command -v krb5kdc >/dev/null || ! command -v krb5-config >/dev/null; then
        export DEBIAN_FRONTEND=noninteractive
        apt-get update -qq
        apt-get install -y -qq --no-install-recommends krb5-kdc krb5-admin-server libkrb5-dev
    fi
    "$programs/python" -m pip install --quiet --disable-pip-version-check --require-hashes --no-build-isolation \
        -r requirements/kerberos.txt
fi

// Command tfjob runs Kubeflow's controller of TFJobs without its webhooks: they check jobs before
// they are stored.
package main

import (
	"flag"
	"fmt"
	"os"

	kubeflow "github.com/kubeflow/training-operator/pkg/apis/kubeflow.org/v1"
	"github.com/kubeflow/training-operator/pkg/controller.v1/common"
	"github.com/kubeflow/training-operator/pkg/controller.v1/tensorflow"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	metrics "sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

func main() {
	flag.Parse() // --kubeconfig, which controller-runtime has declared
	ctrl.SetLogger(zap.New())
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "tfjob:", err)
		os.Exit(1)
	}
}

func run() error {
	known := runtime.NewScheme()
	if err := scheme.AddToScheme(known); err != nil {
		return err
	}
	if err := kubeflow.AddToScheme(known); err != nil {
		return err
	}
	config, err := ctrl.GetConfig()
	if err != nil {
		return err
	}
	manager, err := ctrl.NewManager(config, ctrl.Options{Scheme: known, Metrics: metrics.Options{BindAddress: "0"}})
	if err != nil {
		return err
	}
	if err := tensorflow.NewReconciler(manager, common.GenNonGangSchedulerSetupFunc()).SetupWithManager(manager, 1); err != nil {
		return err
	}
	return manager.Start(ctrl.SetupSignalHandler())
}

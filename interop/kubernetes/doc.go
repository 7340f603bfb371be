// Package kubernetes tests the manifests in deploy/kubernetes against a real API server, its
// controllers of stateful sets and jobs, and Kubeflow's controller of TFJobs. A stand-in for the
// scheduler and the kubelet runs each container as a process with its own root folder, network and
// process numbers. Cgroups, seccomp and network policies are not applied.
//
// The tests run in a network of their own and need neither root nor a connection. "make kubernetes"
// builds what they need. The module is apart from Weft's because of its many requirements.
package kubernetes

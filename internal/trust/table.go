package trust

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
)

// A Rule says under what condition a role may call a method.
type Rule uint8

// The rules.
const (
	Never    Rule = iota
	Always        // in every case
	Own           // for sessions that the same principal has created
	OwnNamed      // if the request names no session, or one that the same principal has created
	Tenant        // for the sessions and containers of the caller's tenant
	InName        // if the request names the caller as its master
	Master        // for sessions and steps whose master is the caller
	OfTenant      // for the containers of the tenant that the caller acts for
	Receiver      // for tensors that are sent to the caller
	Member        // for the caller's own devices
	OpenOnly      // with the flag of the method's row
	numRules
)

var ruleTexts = [numRules]struct{ cell, meaning string }{
	Never:    {"–", "is refused with PERMISSION_DENIED"},
	Always:   {"yes", "always"},
	Own:      {"own", "only sessions that the same principal has created"},
	OwnNamed: {"yes, own", "without a session, or with one that the same principal has created"},
	Tenant:   {"tenant", "only the sessions and containers of the caller's tenant"},
	InName:   {"own name", "only if the request names the caller as the master"},
	Master:   {"master", "only sessions and steps whose master is the caller"},
	OfTenant: {"tenant's", "only the containers of the tenant that the caller acts for"},
	Receiver: {"receiver", "only tensors that are sent to the caller"},
	Member:   {"member", "only for devices of the caller"},
	OpenOnly: {"flag", "only if a flag of the task opens it"},
}

// String returns the text of a cell of the table.
func (r Rule) String() string { return ruleTexts[r].cell }

// Meaning returns what a rule says.
func (r Rule) Meaning() string { return ruleTexts[r].meaning }

// A Method is a row of the table: a path of gRPC, or of HTTP, and what each role may do.
type Method struct {
	Path  string
	Rules [NumRoles]Rule
	Open  string // flag that allows the method without a certificate; "" for none
}

// Name returns the service and method without the package, as in "MasterService/RunStep".
func (m *Method) Name() string {
	name := strings.TrimPrefix(m.Path, "/")
	if i := strings.LastIndexByte(name, '.'); i >= 0 && strings.Contains(name, "/") {
		name = name[strings.LastIndexByte(name[:strings.IndexByte(name, '/')], '.')+1:]
	}
	return name
}

// Flags that open methods to callers without a certificate.
const (
	FlagHealth  = "--health open"
	FlagMetrics = "--metrics open"
)

const (
	healthService = "/grpc.health.v1.Health/"
	masterService = "/tensorflow.MasterService/"
	workerService = "/tensorflow.WorkerService/"
	eagerService  = "/tensorflow.eager.EagerService/"
	inspection    = "/weft.v1.Inspection/"
	channelz      = "/grpc.channelz.v1.Channelz/"

	reflection     = "/grpc.reflection."
	reflectionInfo = ".ServerReflection/ServerReflectionInfo"
)

// Paths of HTTP requests.
const (
	Metrics = "/metrics"
	Drain   = "/drain"
	Quit    = "/quit"
	Profile = "/debug/pprof"
	Livez   = "/livez"
	// Dashboard is the state of the cluster in a browser, Recordings what its button does.
	Dashboard  = "/dashboard/"
	Recordings = "/dashboard/api/recordings"
	Readyz     = "/readyz"
	Version    = "/version"
)

// Methods is the table. The columns are those of the roles: client, task, operator, observer,
// anonymous.
var Methods = []Method{
	{healthService + "Check", [NumRoles]Rule{Always, Always, Always, Always, OpenOnly}, FlagHealth},
	{healthService + "Watch", [NumRoles]Rule{Never, Always, Always, Always, Never}, ""},
	{masterService + "CreateSession", [NumRoles]Rule{Always, Never, Always, Never, Never}, ""},
	{masterService + "ExtendSession", [NumRoles]Rule{Own, Never, Never, Never, Never}, ""},
	{masterService + "PartialRunSetup", [NumRoles]Rule{Own, Never, Never, Never, Never}, ""},
	{masterService + "RunStep", [NumRoles]Rule{Own, Never, Never, Never, Never}, ""},
	{masterService + "CloseSession", [NumRoles]Rule{Own, Never, Always, Never, Never}, ""},
	{masterService + "ListDevices", [NumRoles]Rule{OwnNamed, Never, Always, Always, Never}, ""},
	{masterService + "Reset", [NumRoles]Rule{Tenant, Never, Always, Never, Never}, ""},
	{masterService + "MakeCallable", [NumRoles]Rule{Own, Never, Never, Never, Never}, ""},
	{masterService + "RunCallable", [NumRoles]Rule{Own, Never, Never, Never, Never}, ""},
	{masterService + "ReleaseCallable", [NumRoles]Rule{Own, Never, Never, Never, Never}, ""},
	{workerService + "GetStatus", [NumRoles]Rule{Never, Always, Always, Always, Never}, ""},
	{workerService + "CreateWorkerSession", [NumRoles]Rule{Never, InName, Never, Never, Never}, ""},
	{workerService + "DeleteWorkerSession", [NumRoles]Rule{Never, Master, Never, Never, Never}, ""},
	{workerService + "RegisterGraph", [NumRoles]Rule{Never, Master, Never, Never, Never}, ""},
	{workerService + "DeregisterGraph", [NumRoles]Rule{Never, Master, Never, Never, Never}, ""},
	{workerService + "RunGraph", [NumRoles]Rule{Never, Master, Never, Never, Never}, ""},
	{workerService + "CleanupGraph", [NumRoles]Rule{Never, Master, Never, Never, Never}, ""},
	{workerService + "CleanupAll", [NumRoles]Rule{Never, OfTenant, Always, Never, Never}, ""},
	{workerService + "RecvTensor", [NumRoles]Rule{Never, Receiver, Never, Never, Never}, ""},
	{workerService + "MarkRecvFinished", [NumRoles]Rule{Never, Receiver, Never, Never, Never}, ""},
	{workerService + "Logging", [NumRoles]Rule{Never, Always, Always, Never, Never}, ""},
	{workerService + "Tracing", [NumRoles]Rule{Never, Always, Always, Never, Never}, ""},
	{workerService + "RecvBuf", [NumRoles]Rule{Never, Receiver, Never, Never, Never}, ""},
	{workerService + "GetStepSequence", [NumRoles]Rule{Never, Always, Never, Never, Never}, ""},
	{workerService + "CompleteGroup", [NumRoles]Rule{Never, Member, Never, Never, Never}, ""},
	{workerService + "CompleteInstance", [NumRoles]Rule{Never, Member, Never, Never, Never}, ""},
	{eagerService + "CreateContext", [NumRoles]Rule{Always, Master, Never, Never, Never}, ""},
	{eagerService + "UpdateContext", [NumRoles]Rule{Own, Master, Never, Never, Never}, ""},
	{eagerService + "Enqueue", [NumRoles]Rule{Own, Master, Never, Never, Never}, ""},
	{eagerService + "StreamingEnqueue", [NumRoles]Rule{Own, Master, Never, Never, Never}, ""},
	{eagerService + "WaitQueueDone", [NumRoles]Rule{Own, Master, Never, Never, Never}, ""},
	{eagerService + "RunComponentFunction", [NumRoles]Rule{Own, Master, Never, Never, Never}, ""},
	{eagerService + "KeepAlive", [NumRoles]Rule{Own, Master, Never, Never, Never}, ""},
	{eagerService + "CloseContext", [NumRoles]Rule{Own, Master, Always, Never, Never}, ""},
	{inspection + "GetTask", [NumRoles]Rule{Never, Always, Always, Always, Never}, ""},
	{inspection + "GetCluster", [NumRoles]Rule{Never, Always, Always, Always, Never}, ""},
	{inspection + "Record", [NumRoles]Rule{Never, Always, Always, Never, Never}, ""},
	{inspection + "RecordCluster", [NumRoles]Rule{Never, Always, Always, Never, Never}, ""},
	{inspection + "GetLog", [NumRoles]Rule{Never, Always, Always, Always, Never}, ""},
	{inspection + "SetLogLevel", [NumRoles]Rule{Never, Never, Always, Never, Never}, ""},
	{inspection + "CloseSessions", [NumRoles]Rule{Own, Never, Always, Never, Never}, ""},
	{inspection + "GetGraph", [NumRoles]Rule{Never, Always, Always, Always, Never}, ""},
	{inspection + "GetScalars", [NumRoles]Rule{Never, Always, Always, Always, Never}, ""},
	{channelz + "GetTopChannels", [NumRoles]Rule{Never, Never, Always, Always, Never}, ""},
	{channelz + "GetServers", [NumRoles]Rule{Never, Never, Always, Always, Never}, ""},
	{channelz + "GetServer", [NumRoles]Rule{Never, Never, Always, Always, Never}, ""},
	{channelz + "GetServerSockets", [NumRoles]Rule{Never, Never, Always, Always, Never}, ""},
	{channelz + "GetChannel", [NumRoles]Rule{Never, Never, Always, Always, Never}, ""},
	{channelz + "GetSubchannel", [NumRoles]Rule{Never, Never, Always, Always, Never}, ""},
	{channelz + "GetSocket", [NumRoles]Rule{Never, Never, Always, Always, Never}, ""},
	{reflection + "v1" + reflectionInfo, [NumRoles]Rule{Always, Never, Always, Always, Never}, ""},
	{reflection + "v1alpha" + reflectionInfo, [NumRoles]Rule{Always, Never, Always, Always, Never}, ""},
	{Metrics, [NumRoles]Rule{Never, Never, Always, Always, OpenOnly}, FlagMetrics},
	{Drain, [NumRoles]Rule{Never, Never, Always, Never, Never}, ""},
	{Quit, [NumRoles]Rule{Never, Never, Always, Never, Never}, ""},
	{Profile, [NumRoles]Rule{Never, Never, Always, Never, Never}, ""},
	{Dashboard, [NumRoles]Rule{Never, Never, Always, Always, Never}, ""},
	{Recordings, [NumRoles]Rule{Never, Never, Always, Never, Never}, ""},
	{Livez, [NumRoles]Rule{Always, Always, Always, Always, OpenOnly}, FlagHealth},
	{Readyz, [NumRoles]Rule{Never, Always, Always, Always, OpenOnly}, FlagHealth},
	{Version, [NumRoles]Rule{Always, Always, Always, Always, Never}, ""},
}

// Find returns the rows of a method: of its path, of "Service/Method", or of "Method".
func Find(name string) []*Method {
	var out []*Method
	for i := range Methods {
		m := &Methods[i]
		short := m.Name()
		if m.Path == name || short == name || short[strings.LastIndexByte(short, '/')+1:] == name {
			out = append(out, m)
		}
	}
	return out
}

// WriteTable writes the table as Markdown, or in columns of plain text.
func WriteTable(w io.Writer, markdown bool) error {
	rows := [][]string{{"method"}}
	for r := range NumRoles {
		rows[0] = append(rows[0], r.String())
	}
	used := map[Rule]bool{}
	for i := range Methods {
		m := &Methods[i]
		row := []string{m.Name()}
		for _, rule := range m.Rules {
			used[rule] = true
			text := rule.String()
			if rule == OpenOnly {
				text = m.Open
			}
			row = append(row, text)
		}
		rows = append(rows, row)
	}
	out := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for i, row := range rows {
		switch {
		case !markdown:
			fmt.Fprintln(out, strings.Join(row, "\t"))
		case i == 0:
			fmt.Fprintf(w, "| %s |\n|%s\n", strings.Join(row, " | "), strings.Repeat("---|", len(row)))
		default:
			for j, cell := range row {
				if row[j] = cell; j == 0 || strings.HasPrefix(cell, "--") {
					row[j] = "`" + cell + "`"
				}
			}
			fmt.Fprintf(w, "| %s |\n", strings.Join(row, " | "))
		}
	}
	if err := out.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintln(w)
	for rule := range numRules {
		if used[rule] && rule != OpenOnly && rule != Always && err == nil {
			bullet := ""
			if markdown {
				bullet = "- "
			}
			_, err = fmt.Fprintf(w, "%s%s: %s\n", bullet, rule, rule.Meaning())
		}
	}
	return err
}

// byPath has the rows by path.
var byPath = func() map[string]*Method {
	out := make(map[string]*Method, len(Methods))
	for i := range Methods {
		out[Methods[i].Path] = &Methods[i]
	}
	return out
}()

// Row returns the row of a path, nil if there is none.
func Row(path string) *Method { return byPath[path] }

// Paths returns the paths of the table, in order.
func Paths() []string {
	out := make([]string, len(Methods))
	for i := range Methods {
		out[i] = Methods[i].Path
	}
	slices.SortFunc(out, cmp.Compare[string])
	return out
}

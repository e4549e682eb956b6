// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"fmt"

	"twopath/internal/agent"
)

// New makes the part that p asks for. It is the agent's factory.
func New(p agent.Prepare) (agent.Part, agent.Prepared, error) {
	switch p.Role {
	case agent.Receive:
		return part(newReceive(p))
	case agent.Generate:
		if p.Generate != nil && p.Generate.Method == agent.MethodXSK {
			return part(newXSKGenerator(p))
		}
		return part(newGenerate(p))
	case agent.SendFragments:
		return part(newSendFragments(p))
	case agent.Drop:
		return part(newDrop(p))
	case agent.Send:
		return part(newSend(p))
	case agent.Count:
		return part(newCount(p))
	case agent.Listen:
		return part(newServe(p))
	case agent.Following:
		return part(newFollow(p))
	case agent.Replaying:
		return part(newReplay(p))
	case agent.Dial:
		return part(newDial(p))
	case agent.Echo:
		return part(newEcho(p))
	case agent.Ping:
		return part(newPing(p))
	case agent.Reflect:
		return part(newReflect(p))
	case agent.AnswerDNS:
		return part(newAnswer(p))
	case agent.AskDNS:
		return part(newAsk(p))
	case agent.Dnsperf:
		return part(newDnsperf(p))
	}
	return nil, agent.Prepared{}, fmt.Errorf("prepare: no role %q", p.Role)
}

// part keeps a nil pointer from becoming a Part that is not nil.
func part[P agent.Part](p P, got agent.Prepared, err error) (agent.Part, agent.Prepared, error) {
	if err != nil {
		return nil, got, cured(err)
	}
	return p, got, nil
}

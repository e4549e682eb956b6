// SPDX-License-Identifier: Apache-2.0

package dns

import _ "embed"

//go:embed default.zone
var defaultZone string

// DefaultZone is the text of the zone that is served when none is named.
func DefaultZone() string { return defaultZone }

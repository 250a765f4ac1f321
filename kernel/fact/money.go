package fact

import (
	"fmt"
	"math"
)

// decimals lists the currencies with a smallest unit other than a hundredth (ISO 4217).
var decimals = map[string]int{
	"BIF": 0, "CLP": 0, "DJF": 0, "GNF": 0, "ISK": 0, "JPY": 0, "KMF": 0, "KRW": 0, "PYG": 0, "RWF": 0, "UGX": 0, "UYI": 0,
	"VND": 0, "VUV": 0, "XAF": 0, "XOF": 0, "XPF": 0,
	"BHD": 3, "IQD": 3, "JOD": 3, "KWD": 3, "LYD": 3, "OMR": 3, "TND": 3,
}

// String returns the amount and the currency, rounded to the currency's smallest unit. It does not round a positive
// amount to zero.
func (c Cost) String() string {
	n, ok := decimals[c.Currency]
	if !ok {
		n = 2
	}
	if unit := math.Pow10(-n); c.Amount > 0 && c.Amount < unit/2 {
		return fmt.Sprintf("<%.*f %s", n, unit, c.Currency)
	}
	return fmt.Sprintf("%.*f %s", n, c.Amount, c.Currency)
}

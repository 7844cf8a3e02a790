package bulkhead

import "errors"

func isUnsupported(err error) bool { return errors.Is(err, Unsupported) }

func asInvalid(err error, invalid *InvalidConfig) bool { return errors.As(err, invalid) }

func missing(function string) error {
	return errors.New("the plugin has no function " + function)
}
